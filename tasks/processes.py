"""Commands of environments: what they get, and the pumping of their input and output."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import CommandError
from .environment import ExecResult
from .supervised import Supervised

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
    """One command. `communicate` is called once, in any thread; `kill` at any time, from any thread.

    Raises CommandError for what is no command.
    """

    def __init__(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: bytes | None) -> None:
        self._argv, self._cwd, self._env, self._stdin = argv, cwd, env, stdin
        self._child: Supervised | None = None
        self._killed = threading.Event()

    @property
    def group_alive(self) -> bool:
        """Whether the command, or what it has started, still runs."""
        return self._child is not None and not self._child.wait(0)

    def kill(self) -> None:
        """Kill the command with all that it has started; one that has not been started yet never will be."""
        self._killed.set()
        if self._child is not None:
            self._child.kill()

    def end(self) -> None:
        """Kill it and wait until nobody is left."""
        self.kill()
        if self._child is not None:
            self._child.end()

    def communicate(self, timeout: float | None) -> ExecResult:
        """Start it, feed it its input and read its output until it ends; past `timeout` seconds it is killed.

        Raises CommandError if it can't be started.
        """
        if self._killed.is_set():
            raise CommandError(self._argv, "it was killed before it started")
        if sys.platform == "win32":
            return _communicate_windows(self._argv, self._cwd, self._env, self._stdin, timeout)
        child = self._child = Supervised(
            self._argv, cwd=self._cwd, env=self._env, fed=self._stdin is not None, merged=False
        )
        if self._killed.is_set():  # meanwhile
            child.kill()
        try:
            return self._communicate(child, timeout)
        except BaseException:
            child.end()
            raise
        finally:
            child.close_pipes()
            if self._killed.is_set() or child.wait(0):
                child.end()

    def _communicate(self, child: Supervised, timeout: float | None) -> ExecResult:
        deadline = None if timeout is None else time.monotonic() + timeout
        timed_out, ended_at = False, None
        with selectors.DefaultSelector() as selector:
            pipes = _Pipes(child, self._stdin, selector)
            while True:
                moved = pipes.move(0.05)
                now = time.monotonic()
                if child.poll() is not None:
                    ended_at = now if ended_at is None or moved else ended_at
                    if not pipes.open or now - ended_at > _LINGER_SECONDS:
                        assert child.returncode is not None
                        if timed_out:
                            child.end()
                        return pipes.result(child.returncode, timed_out)
                elif deadline is not None and now >= deadline:
                    timed_out = True
                    child.kill()
                    deadline = None


class _Pipes:
    """The three pipes of a command, moved along without blocking."""

    def __init__(self, child: Supervised, stdin: bytes | None, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._left = memoryview(stdin or b"")
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}
        for name, pipe in (("stdin", child.stdin), ("stdout", child.stdout), ("stderr", child.stderr)):
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


def _communicate_windows(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: bytes | None, timeout: float | None
) -> ExecResult:
    """Without a supervisor: on a timeout the command itself is killed, and what it has started goes on."""
    given = subprocess.DEVNULL if stdin is None else None
    try:
        done = subprocess.run(
            list(argv),
            cwd=cwd,
            env=dict(env),
            input=stdin,
            stdin=given,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return _result(1, late.stdout or b"", late.stderr or b"", timed_out=True)
    except (OSError, ValueError) as error:
        raise CommandError(argv, str(error)) from error
    return _result(done.returncode, done.stdout, done.stderr, timed_out=False)


def _result(returncode: int, out: bytes, err: bytes, timed_out: bool) -> ExecResult:
    return ExecResult(
        returncode=returncode,
        stdout=out[:KEPT_BYTES].decode("utf-8", "replace"),
        stderr=err[:KEPT_BYTES].decode("utf-8", "replace"),
        timed_out=timed_out,
        truncated=max(len(out), len(err)) > KEPT_BYTES,
    )
