"""The sandbox for machines without user namespaces: what cannot be written or reached, and what is put back."""

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest
from needed import missing

from refold import Action, AgentModule, Decision, Engine, StateSchema
from refold.modules.tools import SandboxUnavailableError, Workspace, bash, use_sandbox, use_workspace
from refold.modules.tools.sandbox import bubblewrap, confine
from refold.modules.tools.sandbox.landlock import LandlockSandbox
from refold.modules.tools.sandbox.registry import make_sandbox
from refold.modules.tools.sandbox.unconfined import UnconfinedSandbox


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that no sandbox hides, with a workspace that has a repository."""
    why = LandlockSandbox.unavailable()
    if why is not None:
        pytest.skip(why)
    if shutil.which("git") is None:
        missing("there is no git: apt-get install git")
    folder = Path("/opt") if os.access("/opt", os.W_OK) else Path("/var/tmp")
    made = folder / f"refold-landlock-{os.getpid()}-{random.randrange(10**9)}"
    (made / "ws/sub").mkdir(parents=True)
    (made / "ws/f").write_text("x")
    for args in (["init", "-q"], ["add", "."], ["commit", "-qm", "1"], ["init", "-q", "sub"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=b", *args], cwd=made / "ws", check=True)
    yield made
    shutil.rmtree(made)


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in folder.rglob("*") if path.is_file() and not {"objects", "index", "logs"} & {*path.parts}]
    return {str(path): (path.stat().st_mode, path.read_bytes()) for path in files}


@pytest.mark.anyio
async def test_commands_write_the_workspace_and_nothing_else(place: Path) -> None:
    sandbox, terminal = LandlockSandbox(place / "ws"), os.ttyname(os.openpty()[1])
    code = "import ctypes; print(ctypes.CDLL(None).syscall(425, 1, 0))"
    keys = code.replace("425, 1", "250, 0")  # keyctl(2), of x86_64
    for cmd in (
        f"echo x > {place}/x", f"truncate -s 0 {place}/kept", f"rm {place}/kept", f"mv {place}/kept {place}/ws",
        f"ln {place}/kept {place}/ws/l", f"ln -s {place} l; echo x > l/y", "cat /etc/shadow", f"ls {Path.home()}",
        f"kill {os.getpid()}", f"cat /proc/{os.getpid()}/environ", "echo x > /tmp/x", "echo > /proc/sys/vm/drop_caches",
        f"echo x > {terminal}", f"timeout 1 cat {terminal}", "ls /dev", "script -c true /dev/null",
        "python3 -c 'import socket; socket.socket()'", "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'",
        f"test $(python3 -c '{code}') != -1", f"test $(python3 -c '{keys}') != -1",
        "mount -t tmpfs x /mnt", "unshare -Ur mount -t tmpfs x /mnt",
    ):  # fmt: skip
        (place / "kept").write_text("kept")
        done = await sandbox.exec(["bash", "-c", cmd])
        assert not done.ok, cmd
        assert sorted(each.name for each in place.iterdir()) == ["kept", "ws"], cmd
        assert (place / "kept").read_text() == "kept"
    with use_workspace(place / "ws"), use_sandbox("landlock"):
        await bash("echo a > $TMPDIR/f; echo b > ~/g; echo c > new; git status")
        assert await bash("cat $TMPDIR/f ~/g new") == "a\nb\nc\n"
        with pytest.raises(RuntimeError, match=r"write temporary files to \$TMPDIR"):
            await bash("echo a > /tmp/refold-not-mine")
        with pytest.raises(RuntimeError, match="had no network"):
            await bash("curl -sS http://192.0.2.1")
        assert await bash("python3 -c 'import socket; socket.socket(); print(1)'", network=True) == "1\n"
        with pytest.raises(RuntimeError):
            await bash("python3 -c 'import socket; socket.socket(socket.AF_UNIX)'", network=True)


DEEP = 'import os; os.chdir(".git/hooks"); [(os.mkdir("a"), os.chdir("a")) for _ in range(3000)]'
ATTACKS = [
    "echo x >> .git/config", "echo x > .git/hooks/post-commit; chmod +x .git/hooks/*", "rm .git/HEAD .git/config",
    "echo $PWD/ev > .git/commondir", "mv .git .git2; mkdir -p .git/hooks; echo x > .git/hooks/post-commit",
    "mv .git .git2; echo 'gitdir: ev' > .git; echo x >> .git2/config", "rm -r .git/hooks; ln -s /etc .git/hooks",
    "mv .git .git2; ln -s .git2 .git; echo x >> .git/config", "rm .git/config; mkdir .git/config",
    "echo x > .git/hooks/x; mkdir .git/zz; chmod 0 .git/zz", "echo x > .git/hooks/post-commit; chmod 0 .git .",
    "echo x > .git/hooks/post-commit; chmod 555 .git/hooks .git .", "echo x >> sub/.git/config; chmod 0 sub",
    "mv .git g; echo x >> g/config; chmod 0 g; chmod 555 .", "rm .git/config; mkfifo .git/config",
    "echo x > .git/hooks/post-commit; python3 -c '" + DEEP + "'",
    "chmod 777 .git/config .git/hooks", "echo x > sub/.git/config; rm .git/refs/heads/*", "mv sub/.git x",
]  # fmt: skip


@pytest.mark.parametrize("cmd", ATTACKS)
@pytest.mark.anyio
async def test_what_others_run_as_code_is_put_back(place: Path, cmd: str) -> None:
    workspace = place / "ws"
    before = contents(workspace / ".git"), contents(workspace / "sub/.git")
    done = await LandlockSandbox(workspace).exec(["bash", "-c", cmd])
    assert (contents(workspace / ".git"), contents(workspace / "sub/.git")) == before
    assert "was put back as it was" in done.output
    assert done.returncode != 0, "what was undone has not succeeded"
    shown = subprocess.run(["git", "log", "--format=%s"], cwd=workspace, capture_output=True, text=True, check=True)
    assert shown.stdout == "1\n"


@pytest.mark.anyio
async def test_what_a_command_changes_that_is_cut_short_is_put_back(place: Path) -> None:
    before = contents(place / "ws/.git")
    sandbox, cmd = LandlockSandbox(place / "ws"), "echo x >> .git/config; echo begun; sleep 60"
    done = await sandbox.exec(["bash", "-c", cmd], timeout=5)
    assert done.timed_out
    assert contents(place / "ws/.git") == before
    with anyio.CancelScope() as scope:
        await sandbox.exec(["bash", "-c", cmd], on_output=lambda _: anyio.from_thread.run_sync(scope.cancel))
    assert scope.cancelled_caught
    assert contents(place / "ws/.git") == before


@pytest.mark.anyio
async def test_nothing_is_put_back_through_a_link(place: Path) -> None:
    (place / "elsewhere").mkdir()
    cmd = f"mv sub gone; echo x >> gone/.git/config; rm gone/.git/HEAD; ln -s {place}/elsewhere sub"
    before = contents(place / "ws/sub/.git")
    done = await LandlockSandbox(place / "ws").exec(["bash", "-c", cmd])
    assert list((place / "elsewhere").iterdir()) == []
    assert sorted(contents(place / "ws/gone/.git").values()) == sorted(before.values()), "it is restored where it is"
    assert "gone/.git/config" in done.output
    for cmd in (
        "mv gone sub2; rm -r sub2/.git",
        "rm -rf sub2",
        "mkdir x; mv .git $TMPDIR/g; echo x >> $TMPDIR/g/config",
    ):
        before = contents(place / "ws/.git")
        done = await LandlockSandbox(place / "ws").exec(["bash", "-c", cmd])
        assert done.ok is ("put back" not in done.output)
        assert contents(place / "ws/.git") == before


class State(StateSchema):
    output: str = ""


class Runner(AgentModule[State]):
    """Runs one command."""

    tools: dict[str, Callable[..., Any]] = {"bash": bash.to_action()}

    def __init__(self, cmd: str) -> None:
        self.cmd = cmd

    def init_state(self, task: str) -> State:
        return State()

    def decide(self, state: State) -> Decision:
        return Decision.final(state.output) if state.output else Decision.act([Action("bash", {"cmd": self.cmd})])

    def reduce(self, state: State, decision: Decision, observation: Any) -> None:
        state.output = "".join(f"{each.output}{each.error}" for each in observation.results)


@pytest.mark.parametrize("traces", ["runs", "a/b", ".", "sqlite:///{}/a/runs.db"])
def test_a_run_whose_trace_a_command_could_write_asks(
    place: Path, monkeypatch: pytest.MonkeyPatch, traces: str
) -> None:
    monkeypatch.setattr(bubblewrap, "_tried", lambda: "bubblewrap is not installed")
    monkeypatch.chdir(place / "ws")
    (place / "ws/a").mkdir()
    with use_workspace(place / "ws"):
        result = Engine(Runner("echo x > made"), traces=traces.format(place / "ws")).run("go")
        assert "bubblewrap is not installed" in str(result.waiting[0])
        assert "cannot protect this run's trace" in str(result.waiting[0])
        assert "--traces DIR" in str(result.waiting[0])
        assert not (place / "ws/made").exists()
        assert Engine(Runner("cat f"), traces=place / "runs").run("go").status == "completed"
        assert Engine(Runner("cat f")).run("go").status == "completed"


def test_it_takes_the_place_of_bubblewrap_and_never_less(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bubblewrap, "_tried", lambda: f"bubblewrap is not installed ({place})")
    for _ in range(2):
        assert make_sandbox("auto", Workspace(place / "ws")).name == "landlock"
    [message] = caplog.messages
    assert message == f"Commands run in the sandbox landlock, which is weaker: bubblewrap is not installed ({place})."
    monkeypatch.setattr("refold.modules.tools.sandbox.landlock.landlock_version", lambda: 2)
    found = make_sandbox("auto", Workspace(place / "ws"))
    assert isinstance(found, UnconfinedSandbox)
    assert found.why.startswith(f"bubblewrap is not installed ({place}); Landlock needs Linux 6.2")
    assert confine.landlock_version() >= 3
    monkeypatch.undo()
    for root in ("/", "/var", str(Path.home())):
        with pytest.raises(SandboxUnavailableError, match="Landlock cannot protect"):
            LandlockSandbox(root)
