"""A standard input that a signal can end: who reads it in a thread could not be woken by anything else."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType


@contextmanager
def ended_by_signals() -> Generator[list[int]]:
    """While the block lasts, SIGINT and SIGTERM are the end of standard input; gives the signals that came.

    What is read from descriptor 0 is passed on by a thread. A second signal ends the process at once. For the main
    thread; does nothing on Windows, where a socket is no descriptor.
    """
    came: list[int] = []
    if sys.platform == "win32":
        yield came
        return
    source = os.dup(0)
    passed, given = socket.socketpair()
    os.dup2(given.fileno(), 0)
    given.close()

    def pass_on() -> None:
        with suppress(OSError):
            while chunk := os.read(source, 65536):
                passed.sendall(chunk)
        with suppress(OSError):
            passed.shutdown(socket.SHUT_WR)

    def end(number: int, frame: FrameType | None) -> None:
        if came:
            os._exit(128 + number)
        came.append(number)
        with suppress(OSError):
            passed.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=pass_on, daemon=True, name="refold-mcp-stdin").start()
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.dup2(source, 0)
