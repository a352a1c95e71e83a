"""Questions to a store that may be briefly out of reach.

A store has patience of its own with a server that restarts. A set has some more: what its tasks have done costs more
than a minute's wait.
"""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio import to_thread

from ...errors import StoreError

log = logging.getLogger("refold")
OUTAGE_SECONDS = 60.0
"""For how long a store that fails is asked again: twice as long as a PostgreSQL store itself tries to reach its server.

So a server that is back before that is asked at least twice.
"""
PAUSE_SECONDS = 0.5
R = TypeVar("R")


async def through_outage(ask: Callable[[], R], has_time: Callable[[], bool] = lambda: True) -> R:
    """Return what `ask` returns; after a `StoreError`, ask again.

    The thread is waited for, also if this task is cancelled. Raises the `StoreError` once the outage has lasted too
    long, or if `has_time` says no.
    """
    end = time.monotonic() + OUTAGE_SECONDS
    is_told = False
    while True:
        try:
            with anyio.CancelScope(shield=True):
                return await to_thread.run_sync(ask)
        except StoreError as error:
            if time.monotonic() > end or not has_time():
                raise
            if not is_told:
                log.warning("%s; asking again for %d seconds", error, OUTAGE_SECONDS)
            is_told = True
        await anyio.sleep(PAUSE_SECONDS)
