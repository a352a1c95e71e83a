"""The program that each command runs under, so that nothing the command has started outlives it.

It is run as a script, in a process of its own, and imports nothing of refold. On Linux it is a "child subreaper"
(prctl(2)): whoever loses its parent becomes a child of the supervisor, daemons with a cleared environment and a session
of their own included. So the supervisor knows when nobody is left: when it has no children. A second one stands over
it, for the case that the command kills its supervisor.

It speaks with its parent through a socket, whose end (the parent was killed, say) kills the command too:

    parent      `<length>\n` and the request: arguments, folder and variables, see `packed`; later `k`: kill all
    supervisor  `pid <n>`; `began 0` or `error <errno>`; `exit <code>` once the command has ended; `over <n>` if it had
                more processes than it may, n; `gone <pid> <pid> ...` once nobody is left: those that had to be killed
"""

import os
import select
import signal
import sys
import time
from contextlib import suppress

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of linux/prctl.h."""
_GIVE_UP_SECONDS = 5.0
"""How long processes that cannot be killed (another user's, or stuck in the kernel) are waited for."""
_LOOK_SECONDS = 1.0
"""How often the supervisor looks whether its parent is still there, if a copy of the socket keeps it open."""
_COUNT_SECONDS = 0.02
"""How often the processes are counted, if there is a limit. That of setrlimit(2) does not hold for root, and counts the
processes of all of a user's commands."""


def packed(argv: list[str], cwd: str, env: dict[str, str], most: int | None = None) -> bytes:
    """The request to run a command, of at most so many processes at once."""
    pairs = [part for pair in env.items() for part in pair]
    body = b"\0".join(os.fsencode(each) for each in (str(most or 0), str(len(argv)), *argv, cwd, *pairs))
    return b"%d\n" % len(body) + body


def unpacked(body: bytes) -> tuple[list[bytes], bytes, dict[bytes, bytes], int]:
    """The arguments, folder, variables and most processes (0: any number) of a request."""
    most, count, *parts = body.split(b"\0")
    size = int(count)
    pairs = parts[size + 1 :]
    return parts[:size], parts[size], dict(zip(pairs[::2], pairs[1::2], strict=True)), int(most)


class Supervisor:
    """One command from its start until nobody of it is left; `argv[1]` is the socket's descriptor."""

    def __init__(self, control: int) -> None:
        self._control = control
        os.set_inheritable(control, False)
        self._parent = os.getppid()
        self._wake, written = os.pipe()
        os.set_blocking(written, False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        self._command = 0
        self._code: int | None = None
        self._ends = False
        self._most = 0

    def run(self) -> None:
        """Starts the command, and stays until all of it has ended."""
        body = self._request()
        if body is None or not self._start(body):
            return
        for number in (0, 1, 2):  # held open, they would keep the command's output from ending
            os.close(number)
        while not self._reap():
            self._wait()
            if self._ends:
                self._tell(" ".join(["gone", *map(str, sorted(self._kill_all()))]))
                return
        self._tell("gone")

    def _request(self) -> bytes | None:
        size = b""
        while not size.endswith(b"\n"):
            piece = os.read(self._control, 1)
            if not piece:
                return None
            size += piece
        body = b""
        while len(body) < int(size):
            piece = os.read(self._control, int(size) - len(body))
            if not piece:
                return None
            body += piece
        return body

    def _start(self, body: bytes) -> bool:
        argv, cwd, env, self._most = unpacked(body)
        told, failed = os.pipe()  # closed by exec, if that succeeds
        held, released = os.pipe()
        self._command = os.fork()
        if self._command == 0:
            try:
                os.close(released)
                os.read(held, 1)  # the parent is told of this process before it can do anything to the supervisor
                os.setsid()
                signal.set_wakeup_fd(-1)
                for name in ("SIGPIPE", "SIGXFSZ"):  # which Python ignores
                    signal.signal(getattr(signal, name), signal.SIG_DFL)
                os.chdir(cwd)
                os.execvpe(argv[0], argv, env)
            except OSError as error:
                os.write(failed, b"%d" % (error.errno or 5))
            finally:
                os._exit(127)
        self._tell(f"pid {self._command}")
        os.close(failed)
        os.close(held)
        os.close(released)
        errno = os.read(told, 20)
        os.close(told)
        self._tell(f"error {int(errno)}" if errno else "began 0")
        return not errno

    def _tell(self, line: str) -> None:
        try:
            os.write(self._control, f"{line}\n".encode())
        except OSError:
            self._ends = True  # the parent is gone

    def _wait(self) -> None:
        seconds = _COUNT_SECONDS if self._most else _LOOK_SECONDS
        ready, _, _ = select.select([self._control, self._wake], [], [], seconds)
        if self._control in ready:
            with suppress(OSError):
                os.read(self._control, 100)
            self._ends = True  # `k`, or nobody is there any more
        if self._wake in ready and set(os.read(self._wake, 4096)) - {signal.SIGCHLD}:
            self._ends = True
        if os.getppid() != self._parent:
            self._ends = True
        if self._most and len(descendants(os.getpid())) > self._most:
            self._tell(f"over {self._most}")
            self._ends = True

    def _reap(self) -> bool:
        """Takes note of who has ended; whether nobody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._command:
                self._code = os.waitstatus_to_exitcode(status)
                self._tell(f"exit {self._code}")

    def _kill_all(self) -> set[int]:
        """Kills whoever is left; who that was, but for the command itself."""
        killed: set[int] = set()
        until, pause = time.monotonic() + _GIVE_UP_SECONDS, 0.001
        while not self._reap() and time.monotonic() < until:
            if self._code is None:
                _send(-self._command, signal.SIGSTOP)
            killed |= kill_descendants()
            if self._code is None:
                _send(-self._command, signal.SIGKILL)
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
        return killed - {self._command}


def kill_descendants() -> set[int]:
    """Kills all processes below this one, once; gives which they were.

    All are stopped before any is killed: who starts others faster than they are found would get away else.
    """
    stopped: set[int] = set()
    while fresh := descendants(os.getpid()) - stopped:
        for pid in fresh:
            _send(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        _send(pid, signal.SIGKILL)
    return stopped


def descendants(of: int) -> set[int]:
    """The living processes below one; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except FileNotFoundError:
        return set()
    for name in names:
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue  # it ended meanwhile
            # a zombie has no children any more
            if fields[0] not in (b"Z", b"X"):
                children.setdefault(int(fields[1]), []).append(int(name))
    found: set[int] = set()
    todo = [of]
    while todo:
        below = [pid for pid in children.get(todo.pop(), ()) if pid not in found]
        found.update(below)
        todo += below
    return found


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _become_subreaper() -> None:
    if sys.platform == "linux":
        import ctypes  # for Linux alone

        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _stand_by(supervisor: int) -> None:
    """Waits for the supervisor's end; if it was killed itself, by the command say, its work is done from here."""
    while True:
        pid, status = os.waitpid(-1, os.WUNTRACED)
        if pid == supervisor and os.WIFSTOPPED(status):
            _send(supervisor, signal.SIGCONT)
        elif pid == supervisor:
            break
    until = time.monotonic() + _GIVE_UP_SECONDS
    while kill_descendants() and time.monotonic() < until:
        time.sleep(0.001)


def main(control: int) -> None:
    """Runs the command of the request that comes through a socket, under two supervisors, one over the other."""
    _become_subreaper()
    supervisor = os.fork()
    if supervisor:
        for number in (0, 1, 2, control):
            os.close(number)
        _stand_by(supervisor)
    else:
        _become_subreaper()
        Supervisor(control).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
