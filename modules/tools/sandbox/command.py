"""One command in a process group of its own, which ends whole: on timeout, when cancelled, and when it is done.

Whom a command has started is known in three ways: by its process group; by their parents, for those that have left the
group (`kill_group`); and, on Linux, by a variable in their environment, for those whose parents have ended as well.
"""

import os
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ....tasks import CommandError
from ....tasks.process_tree import kill_group
from .limits import Finished
from .output import Kept, Streamed

_TICK = 0.05
_LINGER_SECONDS = 0.1
"""How long what a command has left in the background may go on to write before it is killed."""
_ROUNDS = 50
_MARK = "REFOLD_COMMAND_"


class Command:
    """A command that has been started. `run` is called once, in any thread; `kill` at any time, from any thread.

    Raises CommandError where it cannot be started.
    """

    def __init__(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: bytes | None) -> None:
        if sys.platform == "win32":
            raise CommandError(argv, "commands need process groups, which Windows does not have")
        self._lock = threading.Lock()
        self._stdin = stdin
        self._mark = f"{_MARK}{secrets.token_hex(8)}"
        self.killed = False
        try:
            self._popen = subprocess.Popen(
                list(argv),
                bufsize=0,
                cwd=cwd,
                env={**_marks(), **env, self._mark: "1"},
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise CommandError(argv, str(error)) from error

    @property
    def ended(self) -> bool:
        """Whether the command itself has ended."""
        with self._lock:
            return self._popen.poll() is not None

    def kill(self) -> None:
        """Kills the command and all that it has started."""
        self.killed = True
        self._kill_all()

    def _kill_all(self) -> int:
        """Kills whoever is left; gives how many there were, but for the command itself."""
        with self._lock:
            alive = self._popen.poll() is None
            others = set(self._marked()) - {self._popen.pid}
            found = kill_group(self._popen.pid, leader_alive=alive, with_signal=signal.SIGKILL)
            for _ in range(_ROUNDS):  # a process may start another while it is being killed
                marked = [pid for pid in self._marked() if pid != self._popen.pid]
                if not marked:
                    break
                others.update(marked)
                for pid in marked:
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.005)
        return len(others) or int(found and not alive)

    def _marked(self) -> list[int]:
        """The processes that bear the command's mark, those that have ended aside."""
        mark = f"{self._mark}=1".encode()
        found: list[int] = []
        with suppress(FileNotFoundError), os.scandir("/proc") as entries:
            for entry in entries:
                if entry.name.isdecimal():
                    with suppress(OSError), open(f"/proc/{entry.name}/environ", "rb") as file:
                        if mark in file.read():
                            found.append(int(entry.name))
        return found

    def run(self, timeout: float | None, keep: int, on_output: Callable[[str], object] | None) -> Finished:
        """Feeds it and reads its output until it ends; past `timeout` seconds it is killed.

        `on_output` is called in this thread with its output as it comes, `keep` characters of it at most.
        """
        try:
            return self._run(timeout, keep, on_output)
        except BaseException:
            self._kill_all()
            raise
        finally:
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(5)
            for pipe in (self._popen.stdin, self._popen.stdout):
                if pipe is not None:
                    pipe.close()

    def _run(self, timeout: float | None, keep: int, on_output: Callable[[str], object] | None) -> Finished:
        deadline = None if timeout is None else time.monotonic() + timeout
        kept, streamed = Kept(keep), Streamed(on_output, keep)
        timed_out, ended_at, left_behind = False, None, 0
        with selectors.DefaultSelector() as selector:
            self._register(selector)
            while True:
                self._move(selector, kept, streamed)
                now = time.monotonic()
                if self.ended:
                    ended_at = now if ended_at is None else ended_at
                    if not selector.get_map() or now - ended_at > 5:
                        left_behind = self._kill_all() or left_behind
                        break
                    if now - ended_at > _LINGER_SECONDS and not left_behind:
                        left_behind = self._kill_all() or 1
                elif deadline is not None and now >= deadline:
                    timed_out = True
                    self._kill_all()
                    deadline = None
        streamed.end()
        text = kept.text()
        behind = 0 if timed_out or self.killed else left_behind
        return Finished(self._popen.returncode, text, timed_out, kept.left_out, behind)

    def _register(self, selector: selectors.BaseSelector) -> None:
        for pipe, event in ((self._popen.stdin, selectors.EVENT_WRITE), (self._popen.stdout, selectors.EVENT_READ)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, event, memoryview(self._stdin or b""))

    def _move(self, selector: selectors.BaseSelector, kept: Kept, streamed: Streamed) -> None:
        """Moves what can be moved, and waits a little for it."""
        if not selector.get_map():
            time.sleep(0.002)
            return
        for key, event in selector.select(_TICK):
            if event & selectors.EVENT_WRITE:
                left = self._fed(key.fd, key.data)
                if left:
                    selector.modify(key.fileobj, selectors.EVENT_WRITE, left)
                    continue
            else:
                chunk = os.read(key.fd, 65536)
                kept.add(chunk)
                streamed.add(chunk)
                if chunk:
                    continue
            selector.unregister(key.fileobj)
            assert not isinstance(key.fileobj, int)
            key.fileobj.close()  # type: ignore[attr-defined]
        streamed.tick()

    @staticmethod
    def _fed(fd: int, left: memoryview) -> memoryview:
        """What is left of its input once it has taken some."""
        try:
            return left[os.write(fd, left[:65536]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError:
            return left[:0]


def _marks() -> dict[str, str]:
    """The marks of the commands that this process itself is part of, which go down to all that it starts."""
    return {name: value for name, value in os.environ.items() if name.startswith(_MARK)}
