"""Finds the recorded outcome of a call that is made again: by what was asked, never by the order of completion."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from ..traces import Effect
from .calls import Recorded

Key = tuple[str, str, int]
ASK = "refold.ask"
"""What the intents of `ask` are called; no function has this name."""


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
        self._events = Counter(_event_key(e["name"], e.get("data")) for e in events)
        for effect in effects:
            for each in effect.walk():
                self._add(each, again)

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

    def earlier(self, recorded: Recorded, phase: str) -> int:
        """How many outcomes of this phase ended before this one and have not been asked for yet."""
        return sum(
            1
            for key, call in self._calls.items()
            if key[0] == phase and call.outcome is not None and call.order < recorded.order and key not in self._taken
        )

    def untaken(self, phase: str) -> int:
        """How many recorded outcomes of a phase nobody has asked for."""
        return sum(
            1 for key, call in self._calls.items() if key[0] == phase and call.outcome and key not in self._taken
        )


def _event_key(name: str, data: Any) -> bytes:
    return orjson.dumps([name, data or {}], option=orjson.OPT_SORT_KEYS)


def unknown(effects: Iterable[Effect], again: frozenset[int]) -> list[Effect]:
    """The calls whose fate only a person can tell: begun, without an outcome (or cancelled), and not idempotent.

    Not those that were waiting for an answer, as they are entered again. Of several attempts at a call the last counts.
    A call inside another is asked about only once the outer one is to run again.
    """
    effects = list(effects)
    ended, waiting = set[Key](), set[Key]()
    last: dict[Key, int] = {}
    for effect in effects:
        for each in effect.walk():
            last[_key(each)] = each.seq
            if not (each.open or each.cancelled):
                ended.add(_key(each))
    for effect in effects:
        _mark_waiting(effect, ended, waiting)

    def lost(effect: Effect) -> bool:
        key = _key(effect)
        open_ = (effect.open or effect.cancelled) and key not in ended
        return open_ and last[key] == effect.seq and effect.seq not in again and key not in waiting

    def look(each: Iterable[Effect]) -> list[Effect]:
        found: list[Effect] = []
        for effect in each:
            if lost(effect) and not effect.idempotent:
                found.append(effect)
            elif effect.open or effect.cancelled:
                found += look(effect.children)
        return found

    return look(effects)


def _key(effect: Effect) -> Key:
    return effect.phase, effect.digest, effect.n


def _mark_waiting(effect: Effect, ended: set[Key], waiting: set[Key]) -> bool:
    """Marks the calls with an `ask` inside that had no answer yet; says whether this is one."""
    inside = [_mark_waiting(child, ended, waiting) for child in effect.children]
    if effect.name == ASK:
        return _key(effect) not in ended
    if any(inside):
        waiting.add(_key(effect))
        return True
    return False
