"""Every sandbox passes the one self-check; the tools run where they are told to; walls that are not there are told."""

import os
from pathlib import Path
from typing import Any

import pytest
from sandbox_promises import check_sandbox

from refold.modules.tools import (
    BubblewrapSandbox,
    DockerSandbox,
    Limits,
    LocalSandbox,
    SandboxUnavailableError,
    Workspace,
    bash,
    python,
    use_sandbox,
    use_workspace,
)
from refold.modules.tools.sandbox.landlock import LandlockSandbox
from refold.modules.tools.sandbox.registry import current_sandbox, make_sandbox, sandbox_names
from refold.tasks.processes.supervised import Supervised

LIMITS = Limits(output_bytes=100_000, file_bytes=500_000, memory_bytes=1_000_000_000)
pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio"])
PROVIDERS: list[Any] = [LocalSandbox, BubblewrapSandbox, LandlockSandbox, DockerSandbox]


def made(provider: Any, folder: Path, limits: Limits | None = None) -> Any:
    needed(provider)
    return provider(folder, limits)


def needed(provider: Any) -> None:
    """Skips where there is no such sandbox; in CI only an engine of docker may be missing."""
    why = provider.unavailable()
    if why is not None and os.environ.get("CI") and provider not in (DockerSandbox, LandlockSandbox):
        pytest.fail(f"{why}; .ci/components installs it")
    if why is not None:
        pytest.skip(why)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda each: each.name)
async def test_every_provider_passes_the_self_check(provider: Any, tmp_path: Path) -> None:
    sandbox = made(provider, tmp_path, LIMITS)
    assert await check_sandbox(sandbox) == []
    assert os.listdir(tmp_path) == []


async def test_the_tools_run_in_the_sandbox_that_was_chosen(tmp_path: Path) -> None:
    needed(BubblewrapSandbox)
    with use_workspace(tmp_path), use_sandbox("bubblewrap", Limits(seconds=250)):
        assert current_sandbox().name == "bubblewrap"
        assert await bash("echo hi > f; cat f; ls -A $HOME /tmp | grep -v '^$'; pwd") != ""
        assert (tmp_path / "f").read_text() == "hi\n"
        shown = set((await bash("ls -A $HOME $HOME/.config $HOME/.ssh 2>/dev/null || true")).split())
        assert not shown & {".ssh", ".config", ".bashrc", ".gitconfig", ".profile", ".cache"}
        assert await python("print(1 + 1)") == "2\n"
        with pytest.raises(RuntimeError, match="Read-only"):
            await bash("touch /etc/x")
        with pytest.raises(RuntimeError):
            await python("import socket; socket.create_connection(('1.1.1.1', 53), 1)")
        assert int(await bash("ls /proc | grep -c '^[0-9]'")) < 10, "it sees its own processes alone"
    assert current_sandbox().name == "local"


async def test_no_workspace_takes_the_walls_away() -> None:
    needed(BubblewrapSandbox)
    with pytest.raises(SandboxUnavailableError, match="the workspace is /"):
        make_sandbox("bubblewrap", Workspace("/"))
    done = await BubblewrapSandbox("/var").exec(["bash", "-c", "ls -A /var/tmp; touch /etc/x || echo no"])
    assert done.output.splitlines()[-1] == "no"
    assert len(done.output.splitlines()) == 2, "what is in /var/tmp is not shown"


async def test_a_sandbox_that_is_not_there_is_never_replaced_by_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sandbox_names() == ["bubblewrap", "docker", "landlock", "local"]
    with pytest.raises(SandboxUnavailableError, match="auto, bubblewrap, docker, landlock, local"):
        make_sandbox("nonsense", Workspace(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxUnavailableError, match="docker is not installed"), use_sandbox("docker"):
        pass


async def test_every_limit_is_set_for_the_processes_of_a_command(tmp_path: Path) -> None:
    sandbox = LocalSandbox(
        tmp_path, Limits(processes=1234, cpu_seconds=77, file_bytes=51_200, memory_bytes=4_000_000_000)
    )
    names = ("NPROC", "CPU", "FSIZE", "AS")
    code = "import resource\n" + "".join(f"print(resource.getrlimit(resource.RLIMIT_{name})[0])\n" for name in names)
    done = await sandbox.exec([*sandbox.python, "-c", code])
    assert done.output.split() == ["1234", "77", "51200", str(4_000_000_000 // 1024 * 1024)]


async def test_a_limit_of_time_holds_whatever_a_call_asks_for(tmp_path: Path) -> None:
    done = await LocalSandbox(tmp_path, Limits(seconds=0.3)).exec(["sleep", "60"], timeout=50)
    assert done.timed_out


@pytest.mark.parametrize("provider", [LocalSandbox, BubblewrapSandbox], ids=lambda each: each.name)
@pytest.mark.parametrize("left", [0, 1, 3])
async def test_what_a_command_leaves_behind_is_counted_without_the_sandboxs_own(
    provider: Any, left: int, tmp_path: Path
) -> None:
    sandbox = made(provider, tmp_path)
    code = "sleep 60 </dev/null >/dev/null 2>&1 & " * left + "echo done"
    for _ in range(5):
        done = await sandbox.exec(["bash", "-c", code])
        assert (done.output, done.left_behind) == ("done\n", left)


async def test_a_path_that_vanishes_before_it_is_hidden_stops_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed(BubblewrapSandbox)
    looks: list[int] = []

    def hidden(*_: object) -> set[str]:
        looks.append(1)
        return {"/opt/of-a-socket-that-is-gone"} if len(looks) < 3 else set()

    monkeypatch.setattr("refold.modules.tools.sandbox.walled.hidden_paths", hidden)
    (tmp_path / "ran").touch()
    sandbox = BubblewrapSandbox(tmp_path)
    count = "echo x >> ran; exit 1"
    assert (await sandbox.exec(["bash", "-c", count])).returncode == 1
    assert (len(looks), (tmp_path / "ran").read_text()) == (3, "x\n")
    await sandbox.exec(["bash", "-c", count])
    assert (len(looks), (tmp_path / "ran").read_text()) == (4, "x\nx\n"), "an exit code of 1 is no reason to run again"


async def test_a_helper_that_ends_by_itself_is_not_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refold.modules.tools.sandbox.command._LINGER_SECONDS", 20.0)
    done = await LocalSandbox(tmp_path).exec(["bash", "-c", "sleep 0.01 </dev/null >/dev/null 2>&1 & echo done"])
    assert (done.output, done.left_behind) == ("done\n", 0)


@pytest.mark.parametrize("kind", [LocalSandbox, BubblewrapSandbox])
async def test_a_command_that_is_killed_for_its_number_of_processes_has_failed(
    kind: type[LocalSandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the command itself has ended with 0 before the others were killed."""
    if (why := kind.unavailable()) is not None:
        pytest.skip(why)

    class Late(Supervised):
        def end(self) -> None:
            super().end()
            self.overrun = True

    monkeypatch.setattr("refold.modules.tools.sandbox.command.Supervised", Late)
    done = await kind(tmp_path, Limits(processes=5)).exec(["/bin/sh", "-c", "printf 'all done'"])
    assert (done.ok, done.returncode) == (False, -9)
    assert done.output.splitlines() == ["all done", "[It had more than 5 processes at once, and was killed]"]
