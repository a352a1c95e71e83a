"""The process with all modules in memory, which forks one for each launcher that asks.

Started as `python server.py ADDRESS`. It has no threads, and ends when its standard input does.
"""

import atexit
import contextlib
import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

IMPORTED = ("refold.engine", "refold.modules.agent", "refold.modules.tools", "refold.modules.mcp", "mcp.client.stdio")
"""Imported beside all modules of the command."""


@dataclass
class Child:
    """A process that was forked, and the launcher to tell of its end."""

    pid: int
    launcher: socket.socket


def serve(address: str) -> Callable[[], None]:
    """Fork a process for each that connects; in each of those, return what is to be run."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(128)
    print("ready", flush=True)
    by_end: dict[int, Child] = {}
    by_launcher: dict[socket.socket, Child] = {}
    while True:
        watched: list[int | socket.socket] = [0, listener, *by_end, *by_launcher]
        readable, _, _ = select.select(watched, [], [])
        for each in readable:
            if each == 0:
                for child in by_end.values():
                    os.kill(child.pid, signal.SIGKILL)
                os.unlink(address)  # the process that asked for it may have been killed
                os.rmdir(os.path.dirname(address))
                os._exit(0)
            elif each is listener:
                launcher, _ = listener.accept()
                work = _forked(launcher)
                if callable(work):
                    return work
                if work is None:
                    launcher.close()
                    continue
                child = Child(work, launcher)
                by_end[os.pidfd_open(work)] = by_launcher[launcher] = child
            elif each in by_end:
                child = by_end.pop(each)
                os.close(each)
                _, status = os.waitpid(child.pid, 0)
                code = os.waitstatus_to_exitcode(status)
                by_launcher.pop(child.launcher, None)
                _tell(child.launcher, code.to_bytes(4, "big", signed=True))
            elif each in by_launcher:
                child = by_launcher[each]
                numbers = each.recv(64)
                for number in numbers:
                    os.kill(child.pid, number)
                if not numbers:  # the launcher was killed
                    os.kill(child.pid, signal.SIGKILL)
                    del by_launcher[each]


def _tell(launcher: socket.socket, code: bytes) -> None:
    """Tell a launcher how its process ended, unless it was killed itself."""
    with launcher, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        launcher.sendall(code)


def _forked(launcher: socket.socket) -> int | Callable[[], None] | None:
    """The process id of a new process; in that process, what is to be run; None if the launcher has gone."""
    head, streams, _, _ = socket.recv_fds(launcher, 4, 3)
    asked = b""
    while len(asked) < (int.from_bytes(head, "big") or 1):
        piece = launcher.recv(1 << 20)
        if not piece:  # the launcher was killed before it had asked
            for stream in streams:
                os.close(stream)
            return None
        asked += piece
    pid = os.fork()
    if pid:
        for stream in streams:
            os.close(stream)
        return pid
    words, env, folder, mask, ignored = marshal.loads(asked)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 256)
    os.setsid()
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    os.environ.clear()
    os.environb.update(env)
    os.umask(mask)
    os.chdir(folder)
    _open_streams()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    return lambda: run(words)


def _open_streams() -> None:
    """Open the standard streams as an interpreter does that starts."""
    encoding = os.environ.get("PYTHONIOENCODING") or "utf-8"
    stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding)
    stdout = _written(1, encoding, "strict", os.isatty(1) or bool(os.environ.get("PYTHONUNBUFFERED")))
    stderr = _written(2, encoding, "backslashreplace", True)
    vars(sys).update(stdin=stdin, __stdin__=stdin, stdout=stdout, __stdout__=stdout, stderr=stderr, __stderr__=stderr)


def _written(number: int, encoding: str, errors: str, lines: bool) -> io.TextIOWrapper:
    raw = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
    return io.TextIOWrapper(raw, encoding, errors, line_buffering=lines)


def run(words: list[str]) -> None:
    """Run a module, code or a file as the interpreter does."""
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    how, *rest = words
    if how == "-m":
        sys.argv = rest
        sys.path[:0] = [os.getcwd(), *paths]
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[:0] = ["", *paths]
        main = type(sys)("__main__")
        sys.modules["__main__"] = main
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = words
        sys.path[:0] = [os.path.dirname(os.path.abspath(how)), *paths]
        runpy.run_path(how, run_name="__main__")


def end(work: Callable[[], None]) -> NoReturn:
    """Run and end as the interpreter does, without taking its modules apart, which takes as long as to import them."""
    code: object = 0
    try:
        work()
    except SystemExit as stop:
        code = stop.code
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit((code or 0) & 255)


def import_all() -> None:
    """Import what commands import."""
    cli = importlib.import_module("refold.cli")
    for module in pkgutil.walk_packages(cli.__path__, "refold.cli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()


if __name__ == "__main__":
    sys.path.pop(0)  # this folder
    import_all()
    end(serve(sys.argv[1]))
