"""Commands in process groups of their own, which end whole: a command's children die with it."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .environment import ExecResult
from .errors import CommandError
from .process_tree import kill_group

KEPT_BYTES = 10_000_000
"""What is kept of each output stream."""

_LINGER_SECONDS = 0.25
"""How long output is waited for after a command has ended, if what it left in the background holds its pipes open."""

_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "TMPDIR")
_INHERITED_WINDOWS = ("SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "USERNAME", "WINDIR")


def child_env(extra: Mapping[str, str] | None) -> dict[str, str]:
    """The variables a command gets: where programs, home and language are, and `extra`. No secret of the parent's."""
    names = (*_INHERITED, *_INHERITED_WINDOWS) if sys.platform == "win32" else _INHERITED
    return {**{name: os.environ[name] for name in names if name in os.environ}, **(extra or {})}


class ChildProcess:
    """One command, from its start. `communicate` is called once, in any thread; `kill` at any time, from any thread.

    Raises:
        CommandError: it can't be started.
    """

    def __init__(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: bytes | None) -> None:
        self._lock = threading.Lock()
        self._stdin = stdin
        self._communicating = False
        if isinstance(argv, str | bytes) or not argv:
            raise CommandError(
                [str(argv)], "argv must be a list of the program and its arguments, such as ['ls', '-l']"
            )
        try:
            self._popen = subprocess.Popen(
                list(argv),
                bufsize=0,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError, TypeError) as error:
            raise CommandError(argv, _start_problem(cwd, env, error)) from error

    @property
    def ended(self) -> bool:
        """Whether the command itself has ended; children of it may go on."""
        with self._lock:
            return self._popen.poll() is not None

    @property
    def group_alive(self) -> bool:
        """Whether the command, or a child of it in its group, still runs."""
        return not self.ended or kill_group(self._popen.pid, leader_alive=False, with_signal=None)

    def kill(self) -> None:
        """Kill the command with its children, and take note of its end."""
        with self._lock:
            if sys.platform == "win32":
                self._popen.kill()
            else:
                kill_group(self._popen.pid, leader_alive=self._popen.poll() is None, with_signal=signal.SIGKILL)

    def wait(self, seconds: float) -> bool:
        """Wait until the command has ended, at most `seconds`; whether it has."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def communicate(self, timeout: float | None) -> ExecResult:
        """Feed it its input and read its output until it ends; past `timeout` seconds it is killed."""
        self._communicating = True
        try:
            if sys.platform == "win32":
                return self._communicate_windows(timeout)
            return self._communicate(timeout)
        except BaseException:
            self.kill()
            self.wait(5)
            raise
        finally:
            self._close_pipes()

    def abandon(self) -> None:
        """Kill it because nobody waits for its output any more."""
        self.kill()
        if not self._communicating:
            self.wait(5)
            self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()

    def _communicate(self, timeout: float | None) -> ExecResult:
        deadline = None if timeout is None else time.monotonic() + timeout
        timed_out, ended_at = False, None
        with selectors.DefaultSelector() as selector:
            pipes = _Pipes(self._popen, self._stdin, selector)
            while True:
                moved = pipes.move(0.05)
                now = time.monotonic()
                if self.ended:
                    ended_at = now if ended_at is None or moved else ended_at
                    if not pipes.open or now - ended_at > _LINGER_SECONDS:
                        return pipes.result(self._popen.returncode, timed_out)
                elif deadline is not None and now >= deadline:
                    timed_out = True
                    self.kill()
                    self.wait(5)

    def _communicate_windows(self, timeout: float | None) -> ExecResult:
        timed_out = False
        try:
            out, err = self._popen.communicate(self._stdin, timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            self.kill()
            out, err = self._popen.communicate()
        return _result(self._popen.returncode, out, err, timed_out)


class _Pipes:
    """The three pipes of a command, moved along without blocking."""

    def __init__(self, popen: subprocess.Popen[bytes], stdin: bytes | None, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._left = memoryview(stdin or b"")
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}
        for name, pipe in (("stdin", popen.stdin), ("stdout", popen.stdout), ("stderr", popen.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_WRITE if name == "stdin" else selectors.EVENT_READ, name)

    @property
    def open(self) -> bool:
        return bool(self._selector.get_map())

    def move(self, seconds: float) -> bool:
        """Move what can be moved, waiting at most `seconds` for something; whether anything was."""
        if not self.open:
            time.sleep(min(seconds, 0.005))
            return False
        events = self._selector.select(seconds)
        for key, _ in events:
            pipe = key.fileobj
            assert not isinstance(pipe, int)
            if not (self._write(key.fd) if key.data == "stdin" else self._read(key.fd, self._kept[key.data])):
                self._selector.unregister(pipe)
                pipe.close()  # type: ignore[attr-defined]
        return bool(events)

    def _write(self, fd: int) -> bool:
        try:
            self._left = self._left[os.write(fd, self._left[:65536]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False  # it does not want the rest
        return bool(self._left)

    @staticmethod
    def _read(fd: int, kept: bytearray) -> bool:
        chunk = os.read(fd, 65536)
        if len(kept) <= KEPT_BYTES:
            kept += chunk  # one chunk past the limit tells that there was more
        return bool(chunk)

    def result(self, returncode: int, timed_out: bool) -> ExecResult:
        return _result(returncode, bytes(self._kept["stdout"]), bytes(self._kept["stderr"]), timed_out)


def _result(returncode: int, out: bytes, err: bytes, timed_out: bool) -> ExecResult:
    return ExecResult(
        returncode=returncode,
        stdout=out[:KEPT_BYTES].decode("utf-8", "replace"),
        stderr=err[:KEPT_BYTES].decode("utf-8", "replace"),
        timed_out=timed_out,
        truncated=max(len(out), len(err)) > KEPT_BYTES,
    )


def _start_problem(cwd: Path, env: Mapping[str, str], error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        where = f"{cwd} is not there" if not cwd.exists() else f"no such program on PATH={env.get('PATH', '')}"
        return f"{where}; check the name, or give its full path"
    return str(error)
