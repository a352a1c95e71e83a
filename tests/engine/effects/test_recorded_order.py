"""Recorded outcomes wait for their turn for as long as this process computes, and not by the clock alone."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from refold.engine.effects.call import Recorded
from refold.engine.effects.journal.recorded_order import QUIET_SECONDS, RecordedOrder


def test_a_process_that_was_stopped_for_a_while_keeps_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = [0.0]
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda self: time.monotonic() + stopped[0])

    async def main() -> list[str]:
        order, came = RecordedOrder(), list[str]()
        first, second = calls = [SimpleNamespace(recorded=Recorded(n, None, order=n), over=False) for n in (1, 2)]
        for call in calls:
            order.add(call)

        async def deliver(name: str, call: Any) -> None:
            await order.turn(call)
            came.append(name)
            call.over = True
            order.moved()

        waiting = asyncio.ensure_future(deliver("second", second))
        await asyncio.sleep(0)
        stopped[0] += 2 * QUIET_SECONDS
        for _ in range(3):  # the turns that the loop gives to what is due, before the code goes on
            await asyncio.sleep(0)
        await deliver("first", first)
        await waiting
        return came

    assert asyncio.run(main()) == ["first", "second"]
