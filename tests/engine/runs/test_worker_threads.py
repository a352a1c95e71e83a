"""Sync code in worker threads: one change of threads there, and one back."""

import asyncio
import threading
from typing import Any

import pytest

from refold.engine.concurrency.threads import in_thread


def scheduled_calls() -> list[Any]:
    """A list to which the running loop adds each call that it schedules for its next turn."""
    loop = asyncio.get_running_loop()
    schedule, scheduled = loop.call_soon, list[Any]()

    def noted(*args: Any, **kwargs: Any) -> asyncio.Handle:
        scheduled.append(args[0])
        return schedule(*args, **kwargs)

    loop.call_soon = noted  # type: ignore[assignment,method-assign]
    return scheduled


def test_the_awaiting_task_goes_on_when_the_result_arrives_and_not_a_turn_of_the_loop_later() -> None:
    async def main() -> tuple[str, int]:
        scheduled = scheduled_calls()
        name: str = await in_thread(lambda: threading.current_thread().name, {})
        return name, len(scheduled)

    assert asyncio.run(main()) == ("refold worker", 0)


def test_an_error_arrives_at_once_too() -> None:
    async def main() -> int:
        scheduled = scheduled_calls()
        with pytest.raises(ZeroDivisionError):
            await in_thread(lambda: 1 // 0, {})
        return len(scheduled)

    assert asyncio.run(main()) == 0


def test_a_cancelled_task_leaves_its_thread_and_goes_on() -> None:
    at_work, may_end = threading.Event(), threading.Event()

    def work() -> None:
        at_work.set()
        may_end.wait()

    async def main() -> list[str]:
        said = list[str]()

        async def waits() -> None:
            try:
                await in_thread(work, {})
            except asyncio.CancelledError:
                said.append("cancelled")
                raise

        task = asyncio.create_task(waits())
        while not at_work.is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        said.append("the thread is still at work" if not may_end.is_set() else "")
        may_end.set()
        return said

    assert asyncio.run(main()) == ["cancelled", "the thread is still at work"]
