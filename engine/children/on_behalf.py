"""Forwards a child's open requests to its parent."""

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
    """Return the answers to the requests of a child of `run`, by request; without those whose time has passed.

    `shown` is added to the details of each request, above all the child's id. `calls` are the calls of `run` that wait
    for the child; empty if the whole run waits.
    """
    given = dict[str, Any]()

    async def ask(request: WaitRequest) -> None:
        asked = replace(request, details={**request.details, **shown})
        value = await run.waits.answer(asked, handled=False, calls=calls)  # the child has tried its handlers already
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
