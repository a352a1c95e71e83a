"""Asks what a child run waits for on its behalf: its questions are those of the run that it belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from ..result import WaitRequest

if TYPE_CHECKING:
    from ..effects.call import Call
    from ..run.live_run import LiveRun


async def answers_for(
    run: "LiveRun", requests: Sequence[WaitRequest], shown: Mapping[str, Any], calls: "Sequence[Call]" = ()
) -> dict[str, Any]:
    """The answers to what a child of `run` waits for, by request; those whose time has passed have none.

    `shown` is what the questions show beside their own details, above all whose they are. `calls` are those of the run
    that wait for the child, where not all of it does.
    """
    given = dict[str, Any]()

    async def ask(request: WaitRequest) -> None:
        asked = replace(request, details={**request.details, **shown})
        value = await run.waits.answer(asked, handled=False, calls=calls)  # the child has asked whom it could
        if request.deadline is None or request.deadline > run.clock.time():
            given[request.id] = value

    run.waits.busy -= 1
    try:
        async with anyio.create_task_group() as group:
            for request in requests:
                group.start_soon(ask, request)
    finally:
        run.waits.busy += 1
    return given
