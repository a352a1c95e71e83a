"""The steps that stop conditions see, read from the growing trace."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, overload

from ....engine import follow_run
from ....traces import Follower, Record
from ..events import AgentStep, steps_among
from ..trajectory.projector import Kept

_RUNS = 64


class Steps(Sequence[AgentStep]):
    """Steps in order: a prefix of a list, then the current turn's.

    The prefix keeps the length that the list had at construction; the list may grow.
    """

    def __init__(self, before: list[AgentStep], last: Sequence[AgentStep] = ()) -> None:
        self._before = before
        self._count = len(before)
        self._last = last

    def __len__(self) -> int:
        return self._count + len(self._last)

    @overload
    def __getitem__(self, place: int) -> AgentStep: ...
    @overload
    def __getitem__(self, place: slice) -> list[AgentStep]: ...
    def __getitem__(self, place: int | slice) -> AgentStep | list[AgentStep]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = place + len(self) if place < 0 else place
        if not 0 <= place < len(self):
            raise IndexError(f"no step {place}: there are {len(self)} steps")
        return self._before[place] if place < self._count else self._last[place - self._count]

    def __iter__(self) -> Iterator[AgentStep]:
        return chain((self._before[i] for i in range(self._count)), self._last)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Steps | list):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, others: Sequence[AgentStep]) -> list[AgentStep]:
        return [*self, *others]

    def __radd__(self, others: Sequence[AgentStep]) -> list[AgentStep]:
        return [*others, *self]

    def __repr__(self) -> str:
        return repr([*self])


class StepsOf:
    """The steps of one run up to its last commit."""

    def __init__(self, trace: Follower, generator: Any, before: Sequence[AgentStep] | None) -> None:
        self.trace = trace
        self._kept = Kept(generator, value=trace.value, history=before is None)
        self._uncommitted: list[Record] = []
        self._steps = list(before or ())
        self._known = 0
        """The number of kept events that `so_far` has read."""

    def so_far(self) -> list[AgentStep]:
        """Return the committed steps."""
        self._uncommitted += self.trace.take()
        settled = [i for i, record in enumerate(self._uncommitted) if record.kind in ("snapshot", "commit")]
        count = settled[-1] + 1 if settled else 0
        for record in self._uncommitted[:count]:
            self._kept.feed(record)
        del self._uncommitted[:count]
        # Read the end of an attempt together with the next attempt's first commit, which retracts that end. Otherwise a
        # known step would vanish.
        self._steps += steps_among(self._kept.events[self._known :])
        self._known = len(self._kept.events)
        return self._steps


class StepsByRun:
    """A cache of the steps of recent runs.

    Each look at a run costs only the steps added since the last look. `before` holds the steps of the conversation that
    the runs continue, or None.
    """

    def __init__(self, generator: Any, before: Sequence[AgentStep] | None = None) -> None:
        self._generator = generator
        self._before = before
        self._runs: OrderedDict[str, StepsOf] = OrderedDict()

    def of(self, run_id: str) -> list[AgentStep]:
        """Return the steps of the current run, up to its last commit.

        Later calls append to the same list.
        """
        known = self._runs.pop(run_id, None)
        trace = follow_run(None if known is None else known.trace)
        if known is None or known.trace is not trace:
            known = StepsOf(trace, self._generator, self._before)
        self._runs[run_id] = known
        while len(self._runs) > _RUNS:
            self._runs.popitem(last=False)
        return known.so_far()
