"""An event loop with a clock of its own, which jumps to the next timer: minutes of waiting take no time."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class _Jump(selectors.SelectSelector):
    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> Any:
        if timeout:
            self.loop.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop for work that only sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        selector = _Jump()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        """Return the virtual seconds."""
        return self.now


def run_virtually(work: Callable[[VirtualLoop], Awaitable[T]]) -> T:
    """Run `work(loop)` in a virtual loop to its end."""
    loop = VirtualLoop()
    try:

        async def main() -> T:
            return await work(loop)

        return loop.run_until_complete(main())
    finally:
        loop.close()
