"""Finds the recorded outcome of a call that is made again: by what was asked, never by the order of completion."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson
from anyio.lowlevel import checkpoint

from ..traces import Effect
from .calls import Recorded

Key = tuple[str, str, int]
_ROUNDS = 200
"""How many rounds of the event loop an outcome waits for those that ended before it."""
ASK = "refold.ask"
"""What the intents of `ask` are called; no function has this name."""
CHILD = "refold.child"
"""What the intents of child runs are called, each with the run's id as `child`."""
STARTED = "refold.start_child"
"""What the intents of child runs are called that go on beside the steps, with their ids too."""
AWAITED = "refold.wait_child"
"""What the intents are called that wait for one of those."""


class Journal:
    """The calls and events that a trace has of one step, or of the start of the run.

    `again` holds the intents that a person has told to run again. A cancelled call counts as not recorded: it runs
    again if it may (see `unknown`).
    """

    def __init__(
        self,
        effects: Iterable[Effect],
        events: Iterable[Mapping[str, Any]] = (),
        *,
        again: frozenset[int] = frozenset(),
        value: Callable[[Any], Any] = lambda result: result,
    ) -> None:
        self._calls: dict[Key, Recorded] = {}
        self._value = value
        self._taken: set[Key] = set()
        self._given: set[int] = set()
        self._inner: set[Key] = set()
        """Calls inside others: whoever is given the outer outcome does not ask for these."""
        self._events = Counter(_event_key(e["name"], e.get("data")) for e in events)
        for effect in effects:
            for each in effect.walk():
                self._add(each, again)
                if each is not effect:
                    self._inner.add(_key(each))

    def _add(self, effect: Effect, again: frozenset[int]) -> None:
        key = _key(effect)
        if effect.open or effect.cancelled or effect.seq in again:
            self._calls.setdefault(key, Recorded(effect.seq, None))
        else:
            self._calls[key] = Recorded(effect.seq, effect.outcome, effect.result, effect.error, effect.outcome or 0)

    def take(self, phase: str, digest: str, n: int) -> Recorded | None:
        """The recorded outcome of this call, or None when it is to be made."""
        key = (phase, digest, n)
        found = self._calls.get(key)
        if found is None or found.outcome is None:
            return None
        self._taken.add(key)
        return Recorded(found.intent, found.outcome, self._value(found.result), found.error, found.order)

    def seen_event(self, name: str, data: Any) -> bool:
        """Whether the trace already has this event; each recorded one answers once."""
        key = _event_key(name, data)
        if self._events[key] <= 0:
            return False
        self._events[key] -= 1
        return True

    def give(self, recorded: Recorded) -> None:
        """Notes that the caller now goes on with an outcome that it took."""
        self._given.add(recorded.intent)

    async def turn(self, recorded: Recorded, phase: str) -> None:
        """Waits until the outcomes of this phase that were recorded before this one were given; not for ever, as the
        code may no longer ask for them.
        """
        for _ in range(_ROUNDS):
            earlier = (call for key, call in self._outer(phase) if call.order < recorded.order)
            if all(call.intent in self._given for call in earlier):
                return
            await checkpoint()

    def untaken(self, phase: str) -> int:
        """How many recorded outcomes of a phase nobody has asked for."""
        return sum(1 for key, _ in self._outer(phase) if key not in self._taken)

    def _outer(self, phase: str) -> Iterator[tuple[Key, Recorded]]:
        for key, call in self._calls.items():
            if key[0] == phase and call.outcome is not None and key not in self._inner:
                yield key, call


def _event_key(name: str, data: Any) -> bytes:
    return orjson.dumps([name, data or {}], option=orjson.OPT_SORT_KEYS)


def unknown(effects: Iterable[Effect], again: frozenset[int]) -> list[Effect]:
    """The calls whose fate only a person can tell: begun, without an outcome (or cancelled), and not idempotent.

    Not those that were waiting for an answer, or for a child run, as they are entered again. A call inside another is
    asked about only once the outer one is to run again.
    """
    found: list[Effect] = []
    for effect in effects:
        if not (effect.open or effect.cancelled):
            continue
        if effect.seq not in again and not effect.idempotent and not is_entered_again(effect):
            found.append(effect)
        else:
            found += unknown(effect.children, again)
    return found


def _key(effect: Effect) -> Key:
    return effect.phase, effect.digest, effect.n


def is_entered_again(effect: Effect) -> bool:
    """Whether there is an `ask` inside that has no answer yet, or a child run that has not ended."""
    return any(each.name in (ASK, CHILD, AWAITED) and (each.open or each.cancelled) for each in effect.walk())
