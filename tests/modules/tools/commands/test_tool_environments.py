"""Commands of a run whose environment is not a folder of this machine, and sandboxes of one's own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from refold.errors import TaskError
from refold.modules.tools import (
    Finished,
    Limits,
    LocalSandbox,
    SandboxUnavailableError,
    Workspace,
    bash,
    python,
    register_sandbox,
    use_sandbox,
    use_workspace,
)
from refold.modules.tools.sandbox import registry as choosing
from refold.modules.tools.sandbox.registry import EnvironmentSandbox, current_sandbox, make_sandbox, sandbox_names
from refold.tasks import HostEnvironment
from refold.tasks.environments.environment import ExecResult, use_environment


class Elsewhere:
    """An environment of another kind, which says what it is asked; its files are those of a folder here."""

    type = "elsewhere"

    def __init__(self, inner: HostEnvironment) -> None:
        self._inner = inner
        self.asked: list[dict[str, Any]] = []

    @property
    def root(self) -> Path:
        return self._inner.root

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> ExecResult:
        self.asked.append({"argv": list(argv), "stdin": stdin, "timeout": timeout, "env": env, "cwd": cwd})
        return await self._inner.exec(argv, stdin=stdin, timeout=timeout, env=env, cwd=cwd)


async def test_tools_run_their_commands_as_the_environment_does(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    async with HostEnvironment(tmp_path) as inner:
        elsewhere = Elsewhere(inner)
        with use_environment(elsewhere):  # type: ignore[arg-type]
            assert isinstance(current_sandbox(), EnvironmentSandbox)
            assert await bash("echo out; echo err >&2; cat", input="in\n", cwd="sub", env={"A": "b"}, timeout=250) == (
                "out\nin\nerr\n"
            )
            assert await python("print(6 * 7)") == "42\n"
            with pytest.raises(RuntimeError, match=r"Command failed \(3\)"):
                await bash("exit 3")
            with pytest.raises(TimeoutError, match="after 1 s"):
                await bash("echo begun; sleep 60", timeout=1)
        first, second = elsewhere.asked[:2]
        assert first == {
            "argv": ["bash", "-c", "echo out; echo err >&2; cat"],
            "stdin": "in\n",
            "timeout": 250,
            "env": {"A": "b"},
            "cwd": "sub",
        }
        assert second["argv"][0] == "python3"
        with use_environment(inner):
            assert type(current_sandbox()) is LocalSandbox, "a folder here is none of another kind"


async def test_an_environment_as_a_sandbox_keeps_within_limits(tmp_path: Path) -> None:
    async with HostEnvironment(tmp_path) as inner:
        sandbox = EnvironmentSandbox(Elsewhere(inner), Limits(seconds=250, output_bytes=1000))  # type: ignore[arg-type]
        pieces: list[str] = []
        done = await sandbox.exec(["sh", "-c", "yes | head -c 5000"], on_output=pieces.append)
        assert (len(done.output), done.left_out, done.output) == (1000, 4000, "".join(pieces))
        hurried = EnvironmentSandbox(Elsewhere(inner), Limits(seconds=1))  # type: ignore[arg-type]
        assert (await hurried.exec(["sleep", "60"], timeout=50)).timed_out
        await sandbox.write("f", b"x")
        assert await sandbox.read("f") == b"x"
        with pytest.raises(TaskError):
            await sandbox.exec(["no-such-program"])


class Twice(LocalSandbox):
    """Runs each command twice."""

    name = "twice"

    def __init__(self, workspace: Workspace, limits: Limits | None = None, *, loud: bool = False) -> None:
        super().__init__(workspace, limits)
        self.loud = loud

    async def exec(self, *args: Any, **kwargs: Any) -> Finished:
        await super().exec(*args, **kwargs)
        return await super().exec(*args, **kwargs)


async def test_a_sandbox_of_ones_own_is_registered_and_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "_providers", dict(choosing._providers))
    register_sandbox("twice", Twice)  # type: ignore[arg-type]
    assert "twice" in sandbox_names()
    with use_workspace(tmp_path), use_sandbox("twice", Limits(seconds=250), loud=True):
        assert await bash("echo x >> f; cat f") == "x\nx\n"
        found = current_sandbox()
        assert isinstance(found, Twice)
        assert (found.loud, found.limits.seconds) == (True, 250)
    monkeypatch.setattr(Twice, "unavailable", staticmethod(lambda: "not today"))
    with pytest.raises(SandboxUnavailableError, match="not today"):
        make_sandbox("twice", Workspace(tmp_path))
