"""The pipes of a running command, moved along without blocking."""

import os
import selectors
from collections.abc import Callable
from types import TracebackType
from typing import Self

from .supervised import Supervised

_CHUNK = 65_536


class Pipes:
    """Feeds a command, reads its output, and hears of its end.

    `take` is called with the name and each chunk of an output stream. The block closes nothing but the selector.
    """

    def __init__(self, child: Supervised, stdin: bytes | None, take: Callable[[str, bytes], object]) -> None:
        self._child, self._left, self._take = child, memoryview(stdin or b""), take
        self._selector = selectors.DefaultSelector()
        self._selector.register(child, selectors.EVENT_READ, None)
        for name, pipe in (("stdin", child.stdin), ("stdout", child.stdout), ("stderr", child.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(
                    pipe, selectors.EVENT_WRITE if name == "stdin" else selectors.EVENT_READ, (name, pipe)
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        self._selector.close()

    @property
    def is_open(self) -> bool:
        """Whether one of the pipes is still open."""
        return any(key.data is not None for key in self._selector.get_map().values())

    def move(self, seconds: float) -> bool:
        """Move data; return whether any pipe was ready within `seconds`."""
        moved = False
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                self._child.poll()
                if self._child.killed is not None:
                    self._selector.unregister(key.fileobj)
                continue
            moved = True
            name, pipe = key.data
            if not (self._feed(key.fd) if name == "stdin" else self._read(key.fd, name)):
                self._selector.unregister(pipe)
                pipe.close()
        return moved

    def _feed(self, fd: int) -> bool:
        try:
            self._left = self._left[os.write(fd, self._left[:_CHUNK]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False  # the command has closed its stdin
        return bool(self._left)

    def _read(self, fd: int, name: str) -> bool:
        chunk = os.read(fd, _CHUNK)
        self._take(name, chunk)
        return bool(chunk)
