"""The records of a live run, as they are written, for whoever iterates over them."""

from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import anyio

from ...traces import Record
from ..concurrency.scheduler import soon
from ..errors import EngineUsageError
from ..result import RunResult


class RunStream:
    """Iterate it for the records; `result` is the run's result once they have ended."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque()
        self._news = anyio.Event()
        self._ended = False
        self._soon = soon()
        self.result_or_none: RunResult | None = None
        self.error: Exception | None = None
        """What kept the run from starting."""

    @property
    def result(self) -> RunResult:
        """The run's result; raises EngineUsageError while the run goes on."""
        if self.result_or_none is None:
            raise EngineUsageError(
                "the run has not ended yet; read its records to the end first: async for record in run"
            )
        return self.result_or_none

    def put(self, record: Record) -> None:
        """Takes a record, from whichever thread writes it."""
        self._records.append(record)
        self._soon(self._wake)

    def end(self) -> None:
        """Says that no more records come."""
        self._ended = True
        self._wake()

    def _wake(self, *_: Any) -> None:
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[Record]:
        while True:
            while self._records:
                yield self._records.popleft()
            if self._ended:
                return
            self._news = anyio.Event()
            if not self._records and not self._ended:
                await self._news.wait()
