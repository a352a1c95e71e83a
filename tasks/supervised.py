"""A command under its supervisor (see `supervisor`): started, watched and killed with all that it has started."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import CommandError
from .process_tree import kill_group
from .supervisor import descendants, packed

_SCRIPT = Path(__file__).with_name("supervisor.py")
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables that this Python may need to start at all; the supervisor gets no others of this process's."""
_PATIENCE_SECONDS = 8.0
"""How long the supervisor may take to kill everything before it is done from here."""


class Supervised:
    """A command that runs. All methods can be called from any thread.

    `stdin`, `stdout` and `stderr` are the pipes' ends here, None where there is no pipe. `pass_fds` stay open in the
    command. `most` is how many processes it may have at once; with more, all of it is killed.

    Raises:
        CommandError: it can't be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        fed: bool,
        merged: bool,
        pass_fds: Sequence[int] = (),
        most: int | None = None,
    ) -> None:
        _check(argv, env)
        self._lock = threading.Lock()
        self._told = b""
        self._begun = False
        self._error: int | None = None
        self.pid = 0
        self.returncode: int | None = None
        """How the command itself ended; None while it runs."""
        self.killed: frozenset[int] | None = None
        """Which of its processes had to be killed, the command aside; None until nobody is left."""
        self.overrun = False
        """Whether it was killed as it had too many processes."""
        self._socket, theirs = socket.socketpair()
        try:
            with theirs:
                self._popen = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_SCRIPT), str(theirs.fileno())],
                    bufsize=0,
                    cwd="/",
                    env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                    stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if merged else subprocess.PIPE,
                    pass_fds=(theirs.fileno(), *pass_fds),
                    start_new_session=True,
                )
        except OSError as error:
            self._socket.close()
            raise CommandError(argv, f"its supervisor could not be started: {error}") from error
        self.stdin, self.stdout, self.stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        try:
            self._start(argv, cwd, env, most)
        except BaseException:
            self.close()
            raise

    def _start(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], most: int | None) -> None:
        with suppress(OSError):  # it has ended; what it says is read below
            self._socket.sendall(packed(list(argv), os.path.abspath(cwd), dict(env), most))
        while not self._begun and self._error is None and self.killed is None:
            self._look(None)
        if self.pid == 0 or self._error is not None:
            raise CommandError(argv, _start_problem(cwd, env, self._error))

    def fileno(self) -> int:
        """What becomes readable when there is something to `poll`."""
        return self._socket.fileno()

    def poll(self) -> int | None:
        """How the command has ended; None while it runs. What it has started may go on, see `killed`."""
        self._look(0)
        return self.returncode

    def kill(self) -> None:
        """Kill the command with all that it has started. Does not wait: see `wait`."""
        with suppress(OSError):  # all of it has ended
            self._socket.send(b"k", socket.MSG_DONTWAIT)
        if self.killed is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGCONT)  # the command may have stopped its supervisors

    def wait(self, seconds: float) -> bool:
        """Wait until nobody is left, at most `seconds`; whether that is so."""
        until = time.monotonic() + seconds
        while self.killed is None and (left := until - time.monotonic()) > 0:
            self._look(left)
        return self.killed is not None

    def end(self) -> None:
        """Kill all of it and wait for that, whatever becomes of the supervisor; the descriptors are closed."""
        self.kill()
        if not self.wait(_PATIENCE_SECONDS):
            for pid in (*descendants(self._popen.pid), self._popen.pid):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self.wait(1)
        self.close()

    def close(self) -> None:
        """Close the descriptors, upon which the supervisor kills whoever is left, and ends."""
        self._socket.close()
        self.close_pipes()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(_PATIENCE_SECONDS)

    def close_pipes(self) -> None:
        """Close the pipes' ends here."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()

    def _look(self, seconds: float | None) -> None:
        """Takes note of what the supervisor says, waiting at most `seconds` for something."""
        if self.killed is not None or self._socket.fileno() < 0:
            return
        ready = select.poll()  # select() knows no descriptors above 1023
        ready.register(self._socket, select.POLLIN)
        if not ready.poll(None if seconds is None else seconds * 1000):
            return
        with self._lock:
            try:
                piece = self._socket.recv(4096, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return  # another thread has read it
            except OSError:
                piece = b""
            if not piece:
                self._bereft()
            *lines, self._told = (self._told + piece).split(b"\n")
            for line in lines:
                what, *numbers = line.split()
                number = numbers[0] if numbers else b""
                if what == b"pid":
                    self.pid = int(number)
                elif what == b"began":
                    self._begun = True
                elif what == b"error":
                    self._error = int(number)
                elif what == b"exit":
                    self.returncode = int(number)
                elif what == b"over":
                    self.overrun = True
                elif what == b"gone":
                    self.returncode = -signal.SIGKILL if self.returncode is None else self.returncode
                    self.killed = frozenset(map(int, numbers))

    def _bereft(self) -> None:
        """The supervisor was killed: what can be found of the command is killed from here."""
        if self.killed is None and self.pid:
            kill_group(self.pid, leader_alive=self.returncode is None, with_signal=signal.SIGKILL)
        self.returncode = -signal.SIGKILL if self.returncode is None else self.returncode
        self.killed = self.killed or frozenset()


def _check(argv: Sequence[str], env: Mapping[str, str]) -> None:
    if isinstance(argv, str | bytes) or not argv:
        raise CommandError([str(argv)], "argv must be a list of the program and its arguments, such as ['ls', '-l']")
    if any("\0" in str(each) for each in (*argv, *env, *env.values())):
        raise CommandError(argv, "a NUL character is in no argument and no variable")
    if bad := [name for name in env if not name or "=" in name]:
        raise CommandError(argv, f"{bad[0]!r} is no name of a variable")


def _start_problem(cwd: Path, env: Mapping[str, str], number: int | None) -> str:
    if number is None:
        return "its supervisor was killed before it started"
    if not cwd.is_dir():
        return f"{cwd} is not there; check the name"
    if number == errno.ENOENT:
        return f"no such program on PATH={env.get('PATH', '')}; check the name, or give its full path"
    return os.strerror(number)
