"""A command whose caller is interrupted is killed with its children, whatever interrupts it."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import ended

from refold.errors import TaskError
from refold.tasks.processes import commands
from refold.tasks.processes.commands import ChildProcess, child_env


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), MemoryError()])
def test_an_interrupted_command_is_killed(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "pid"
    command = ["sh", "-c", f"sleep 600 & echo $! > {note}; wait"]
    child = ChildProcess(command, cwd=tmp_path, env=child_env(None), stdin=None)
    move = commands._Pipes.move

    def interrupted(self: Any, seconds: float) -> bool:
        if note.exists() and note.read_text().strip():
            raise error
        return move(self, seconds)

    monkeypatch.setattr(commands._Pipes, "move", interrupted)
    with pytest.raises(type(error)):
        child.communicate(None)
    until = time.monotonic() + 250
    while not ended(int(note.read_text())):
        assert time.monotonic() < until, "its child lives on"
        time.sleep(0.01)


@pytest.mark.parametrize("end", [ChildProcess.kill, ChildProcess.end])
def test_a_command_that_was_killed_before_it_started_never_starts(
    end: Callable[[ChildProcess], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    monkeypatch.setattr(commands, "Supervised", lambda *args, **kwargs: started.append(args))
    child = ChildProcess([sys.executable, "-c", ""], cwd=tmp_path, env=child_env(None), stdin=None)
    end(child)
    with pytest.raises(TaskError, match="killed before it started"):
        child.communicate(None)
    assert not started
    assert not child.group_alive


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_nobody_is_left_of_a_command_that_was_killed_once_its_end_is_told(tmp_path: Path) -> None:
    note = tmp_path / "begun"
    apart = "setsid sleep 600 > /dev/null 2>&1 &"
    command = ["sh", "-c", f"{apart * 30} echo > {note}; exec sleep 600"]
    child = ChildProcess(command, cwd=tmp_path, env=child_env(None), stdin=None)

    def kill() -> None:
        until = time.monotonic() + 250
        while not note.exists() and time.monotonic() < until:
            time.sleep(0.01)
        child.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    result = child.communicate(None)
    assert not child.group_alive
    assert result.returncode != 0
    killer.join()
