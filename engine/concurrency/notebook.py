"""Runs async work from a cell of a notebook.

The kernel's event loop runs in the cell's thread, and is blocked while a cell computes. So the work gets a thread with
its own loop.
"""

import asyncio
import contextvars
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

import anyio

R = TypeVar("R")
_LOOK = 0.5
"""How often, in seconds, a waiting cell looks for an interrupt on systems whose locks ignore interrupts."""


def in_notebook() -> bool:
    """Return whether this is the thread in which IPython runs cells."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None and threading.current_thread() is threading.main_thread()


def run_in_thread(work: Callable[[], Awaitable[R]]) -> R:
    """Run `work` in a new thread with an event loop, and wait.

    Output of the work appears under the cell that runs it. An interrupt cancels the work, waits until it has cleaned
    up, and is raised as KeyboardInterrupt with the cancellation's `result` attribute. A second interrupt is raised at
    once.
    """
    return _ThreadedWork(work).run()


class _ThreadedWork(Generic[R]):
    def __init__(self, work: Callable[[], Awaitable[R]]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._cancel: Callable[[], object] | None = None
        self._interrupted = False
        self._results: list[R] = []
        self._error: BaseException | None = None

    def run(self) -> R:
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(self._main,), name="refold notebook run", daemon=True)
        try:
            thread.start()
            self._wait()
        except KeyboardInterrupt as interrupt:
            if thread.ident is not None:
                self._interrupt()
                self._wait()
            ended = self._results[0] if self._results else getattr(self._error, "result", None)
            interrupt.result = ended  # type: ignore[attr-defined]
            raise
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _wait(self) -> None:
        while not self._over.wait(_LOOK):
            pass

    def _interrupt(self) -> None:
        with self._lock:
            self._interrupted = True
            if self._cancel is not None:
                self._cancel()

    def _main(self) -> None:
        try:
            anyio.run(self._keep)
        except BaseException as error:  # noqa: BLE001 - raised in the cell's thread
            self._error = self._error or error
        finally:
            self._over.set()

    async def _keep(self) -> None:
        """Do the work, and keep its result in a list.

        asyncio would make the repr of a returned result.
        """
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        with self._lock:
            self._cancel = partial(loop.call_soon_threadsafe, task.cancel, "SIGINT")
            if self._interrupted:
                task.cancel("SIGINT")
        try:
            self._results.append(await self._work())
        except BaseException as error:
            self._error = error
            raise
        finally:
            with self._lock:
                self._cancel = None  # the loop closes: it takes no calls from here on
