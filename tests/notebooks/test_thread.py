"""Work from a notebook's cell: a thread with a loop, whose result, error and context are the cell's."""

import asyncio
from contextvars import ContextVar

import pytest

from refold.engine.concurrency import signals
from refold.engine.concurrency.signals import in_notebook, run_in_thread
from refold.errors import UsageError

known: ContextVar[str] = ContextVar("known")


async def doubled(number: int) -> str:
    await asyncio.sleep(0)
    if number < 0:
        raise ValueError(f"{number} is negative")
    return f"{2 * number} {known.get('nothing')}"


def test_a_thread_gives_the_result_the_error_and_sees_the_context() -> None:
    known.set("this")
    assert run_in_thread(lambda: doubled(4)) == "8 this"
    with pytest.raises(ValueError, match="-1 is negative"):
        run_in_thread(lambda: doubled(-1))


def test_only_a_notebooks_loop_gets_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    async def cell() -> str:
        return signals.run_blocking(lambda: doubled(4), "await it")

    assert not in_notebook()
    with pytest.raises(UsageError, match="await it"):
        asyncio.run(cell())
    monkeypatch.setattr(signals, "in_notebook", lambda: True)
    assert asyncio.run(cell()).startswith("8")
