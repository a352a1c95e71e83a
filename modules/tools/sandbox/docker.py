"""A sandbox of Docker containers: one for each command, then removed."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from ....tasks.processes.commands import child_env
from ..files.workspace import Workspace
from .command import Start
from .limits import Limits
from .paths.guarded_files import guarded
from .paths.scratch import Scratch
from .variables import variables_for
from .walled import WalledSandbox

IMAGE = "python:3.12-slim"
_INSIDE = "/workspace"
_OWN = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR")
"""Variables that the image sets itself."""


class DockerSandbox(WalledSandbox):
    """Runs each command in a container with the workspace at /workspace.

    The container has no network, a read-only root and its own /tmp. The image must exist locally: none is pulled. It
    needs sh, and for the tools `bash` and `python`, bash and python3.
    """

    name = "docker"

    def __init__(
        self,
        workspace: Workspace | str | Path,
        limits: Limits | None = None,
        *,
        image: str = IMAGE,
        network: bool = False,
    ) -> None:
        super().__init__(workspace, limits, network=network)
        self.image = image

    @staticmethod
    def unavailable(image: str = IMAGE) -> str | None:
        """Return why Docker or the image is unavailable here, or None."""
        if shutil.which("docker") is None:
            return "docker is not installed"
        try:
            inspected = subprocess.run(
                ["docker", "image", "inspect", image, "--format", "{{.Id}}"],
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"docker does not answer: {error}"
        return None if inspected.returncode == 0 else f"docker cannot run {image}: {inspected.stderr.strip()}"

    @property
    def python(self) -> Sequence[str]:
        """The image's command that starts Python."""
        return ["python3"]

    def _limited(self, argv: Sequence[str]) -> list[str]:
        """Return the command without limits on memory and processes.

        The engine enforces these for the whole container.
        """
        return replace(self.limits, memory_bytes=None, processes=None).wrapped(argv)

    @contextmanager
    def _prepared(self, argv: list[str], folder: Path, env: dict[str, str], scratch: Scratch) -> Iterator[Start]:
        name = f"refold-{secrets.token_hex(8)}"
        client = child_env({each: os.environ[each] for each in _ENGINE if each in os.environ})
        run = ["docker", "run", "--rm", "--interactive", "--init", "--name", name]
        run += ["--pull", "never", *([] if self.network else ["--network", "none"]), "--read-only", "--cap-drop", "ALL"]
        run += ["--security-opt", "no-new-privileges", "--user", f"{os.getuid()}:{os.getgid()}"]
        run += ["--env", "HOME=/tmp", "--env", "TMPDIR=/tmp"]
        run += ["--volume", f"{scratch.path / 'tmp'}:/tmp"]
        run += ["--volume", f"{self.workspace.root}:{_INSIDE}", "--workdir", self._inside(folder)]
        more = variables_for(self.workspace.root, network=self.network)
        for variable, value in ({n: v for n, v in child_env(more).items() if n not in _OWN} | env).items():
            run += ["--env", f"{variable}={value}"]
        if self.limits.memory_bytes:
            run += ["--memory", str(self.limits.memory_bytes)]
        if self.limits.processes:
            run += ["--pids-limit", str(self.limits.processes)]
        with guarded(self.workspace) as guards:
            for path, is_writable in guards.mounts.items():
                run += ["--volume", f"{path}:{self._inside(path)}:{'rw' if is_writable else 'ro'}"]
            try:
                yield Start([*run, self.image, *argv], client, notes=guards.notes)
            finally:  # killing docker's client does not end the container
                with suppress(OSError, subprocess.SubprocessError):
                    subprocess.run(["docker", "rm", "--force", name], capture_output=True, timeout=30, check=False)

    def _inside(self, path: Path) -> str:
        return str(Path(_INSIDE) / path.relative_to(self.workspace.root))


_ENGINE = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")
