"""A port for a server in a process of its own."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held_port() -> Iterator[int]:
    """Give a port of loopback that nobody else is given within the block, whether a server listens on it or not.

    A port that was merely free a moment ago may be given to another process of the suite before the server has started,
    or while it is down. This one is bound throughout. On Linux, a server that sets SO_REUSEADDR, as nearly all do, may
    still listen on it.
    """
    with socket.socket() as holding:
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holding.bind(("127.0.0.1", 0))
        yield holding.getsockname()[1]


def wait_until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a server that was started listens; raise AssertionError with its log if it does not."""
    until = time.monotonic() + 250
    while process.poll() is None and time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"the server does not listen; it ended with {process.poll()}:\n{log.read_text()}")
