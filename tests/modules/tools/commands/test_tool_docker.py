"""The docker sandbox against a docker that is none: what it is asked to run, what is removed, what it is not told.

Where an engine is, the real one passes the self-check of all sandboxes (`test_tool_sandboxes`).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from refold.modules.tools import (
    DockerSandbox,
    Limits,
    SandboxUnavailableError,
    bash,
    python,
    use_sandbox,
    use_workspace,
)

pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio"])

FAKE = """#!{python}
import json, os, subprocess, sys
log, args = {log!r}, sys.argv[1:]
with open(log, "a") as file:
    seen = {{name: os.environ.get(name) for name in ("MY_API_KEY", "DOCKER_HOST")}}
    file.write(json.dumps({{"args": args, **seen}}) + "\\n")
if args[:2] == ["image", "inspect"]:
    if args[2] == "missing:1":
        sys.exit("Error: No such image: missing:1")
    print("sha256:1")
elif args[0] == "run":
    rest, env, folder, at = args[1:], {{}}, None, None
    while rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("--rm", "--interactive", "--init", "--read-only"):
            continue
        value = rest.pop(0)
        if option == "--env":
            name, _, text = value.partition("=")
            env[name] = text
        elif option == "--volume":
            folder = value.rpartition(":")[0]
        elif option == "--workdir":
            at = value
    cwd = folder + at.removeprefix("/workspace")
    done = subprocess.run(rest[1:], cwd=cwd, env={{**env, "PATH": os.environ["PATH"]}})
    sys.exit(done.returncode)
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "log"
    (folder / "docker").write_text(FAKE.format(python=sys.executable, log=str(log)))
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-value")
    monkeypatch.setenv("DOCKER_HOST", "unix:///somewhere.sock")
    (tmp_path / "ws" / "sub").mkdir(parents=True)
    return log


def asked(log: Path, *head: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    return [each for each in found if each["args"][: len(head)] == list(head)]


def option(args: list[str], name: str) -> list[str]:
    return [args[n + 1] for n, arg in enumerate(args) if arg == name]


async def test_a_command_runs_in_a_container_with_all_its_walls(log: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    limits = Limits(memory_bytes=100_000_000, processes=50, cpu_seconds=20)
    with use_workspace(workspace), use_sandbox("docker", limits):
        assert await bash("echo $COLOUR; cat; pwd", cwd="sub", env={"COLOUR": "blue"}, input="in\n") == (
            f"blue\nin\n{workspace / 'sub'}\n"
        )
        assert await python("print(6 * 7)") == "42\n"
        with pytest.raises(RuntimeError, match=r"Command failed \(3\)"):
            await bash("exit 3")
    runs = [each["args"] for each in asked(log, "run")]
    assert len(runs) == 3
    args = runs[0]
    assert args[1:4] == ["--rm", "--interactive", "--init"]
    for name, value in (
        ("--pull", "never"),
        ("--network", "none"),
        ("--cap-drop", "ALL"),
        ("--security-opt", "no-new-privileges"),
        ("--user", f"{os.getuid()}:{os.getgid()}"),
        ("--workdir", "/workspace/sub"),
        ("--memory", "100000000"),
        ("--pids-limit", "50"),
    ):
        assert option(args, name) == [value], name
    scratch, volume = option(args, "--volume")
    assert scratch.endswith("/tmp:/tmp")
    assert volume == f"{workspace}:/workspace"
    assert "--read-only" in args
    assert "COLOUR=blue" in option(args, "--env")
    assert "HOME=/tmp" in option(args, "--env")
    assert not [each for each in option(args, "--env") if each.startswith(("PATH=", "MY_API_KEY="))]
    assert "sk-very-secret" not in str(asked(log, "run"))
    assert {each["DOCKER_HOST"] for each in asked(log, "run")} == {"unix:///somewhere.sock"}
    image = args.index("python:3.12-slim")
    assert args[image + 1] == "/bin/sh", "the limits that docker has no option for are set inside"
    assert args[-3:-1] == ["bash", "-c"]
    names = [option(each, "--name")[0] for each in runs]
    assert len(set(names)) == 3
    assert [each["args"][-1] for each in asked(log, "rm", "--force")] == names


@pytest.mark.parametrize("how", ["timeout", "cancel"])
async def test_a_container_is_removed_when_its_command_is_cut_short(log: Path, tmp_path: Path, how: str) -> None:
    sandbox = DockerSandbox(tmp_path / "ws")
    with anyio.move_on_after(1.5 if how == "cancel" else 30):
        done = await sandbox.exec(["sleep", "60"], timeout=1.5 if how == "timeout" else None)
        assert done.timed_out
    (run,) = asked(log, "run")
    assert [each["args"][-1] for each in asked(log, "rm", "--force")] == option(run["args"], "--name")


async def test_without_engine_or_image_the_sandbox_says_so(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DockerSandbox.unavailable() is None
    assert DockerSandbox.unavailable("missing:1") == "docker cannot run missing:1: Error: No such image: missing:1"
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxUnavailableError, match="docker is not installed"), use_sandbox("docker"):
        pass
