"""The sandbox that is a container of a docker engine, made for each command and removed after it."""

import math
import os
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread

from ....tasks.processes import child_env
from ..files.workspace import Workspace
from .limits import Limits, Wall
from .local import LocalSandbox

IMAGE = "python:3.12-slim"
_INSIDE = "/workspace"
_OWN = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR")
"""Variables that the image knows better."""


class DockerSandbox(LocalSandbox):
    """Runs each command in a container: no network, a read-only root, its own /tmp, the workspace at /workspace.

    The image must be there: none is pulled. It has to have sh, and for the tools `bash` and `python`, bash and python3.
    """

    name = "docker"
    walls: frozenset[Wall] = frozenset({"network", "files", "processes", "tmp"})

    def __init__(self, workspace: Workspace | str | Path, limits: Limits | None = None, *, image: str = IMAGE) -> None:
        super().__init__(workspace, limits)
        self.image = image

    @staticmethod
    def unavailable(image: str = IMAGE) -> str | None:
        """Why there is no docker engine with the image here; None where there is."""
        if shutil.which("docker") is None:
            return "docker is not installed"
        try:
            asked = subprocess.run(
                ["docker", "image", "inspect", image, "--format", "{{.Id}}"],
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"docker does not answer: {error}"
        return None if asked.returncode == 0 else f"docker cannot run {image}: {asked.stderr.strip()}"

    @property
    def python(self) -> Sequence[str]:
        """The command that starts Python: the image's."""
        return ["python3"]

    def _limited(self, argv: Sequence[str]) -> list[str]:
        """Memory and processes are limited by the engine, for the container as a whole."""
        return replace(self.limits, memory_bytes=None, processes=None).wrapped(argv)

    def _command(self, argv: list[str], folder: Path, env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        inside = Path(_INSIDE) / folder.relative_to(self.workspace.root)
        passed = {name: value for name, value in child_env(None).items() if name not in _OWN} | env
        run = ["docker", "run", "--rm", "--interactive", "--init", "--name", f"refold-{secrets.token_hex(8)}"]
        run += ["--pull", "never", "--network", "none", "--read-only", "--tmpfs", "/tmp:exec", "--cap-drop", "ALL"]
        run += ["--security-opt", "no-new-privileges", "--user", f"{os.getuid()}:{os.getgid()}", "--env", "HOME=/tmp"]
        run += ["--volume", f"{self.workspace.root}:{_INSIDE}", "--workdir", str(inside)]
        for name, value in passed.items():
            run += ["--env", f"{name}={value}"]
        if self.limits.memory_bytes:
            run += ["--memory", str(self.limits.memory_bytes)]
        if self.limits.processes:
            run += ["--pids-limit", str(self.limits.processes)]
        return [*run, self.image, *argv], child_env({n: os.environ[n] for n in _ENGINE if n in os.environ})

    async def _cleaned(self, command: Sequence[str]) -> None:
        """Removes the container, which goes on when docker's client is killed."""
        name = command[command.index("--name") + 1]

        def remove() -> None:
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(["docker", "rm", "--force", name], capture_output=True, timeout=30, check=False)

        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(remove, limiter=anyio.CapacityLimiter(math.inf))


_ENGINE = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")
