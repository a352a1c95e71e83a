"""Finds the recorded outcome of a call that is made again: by what was asked, never by the order of completion."""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from ...traces import Effect
from ..state.serialization import dump
from .call import LAST, Recorded
from .context import Frame
from .lanes import Lane, asked_as, lane_in, lane_name, started_in
from .recorded_order import RecordedOrder
from .state_refs import Asked, read_form
from .unmarked import MARKED, fits

Number = int | str
Match = tuple[str, Number]
"""What a call is matched by, inside of its phase: the digest of the request, and its number among the equal ones."""
Key = tuple[str, str, Number]
ASK = "refold.ask"
"""What the intents of `ask` are called; no function has this name."""
CHILD = "refold.child"
"""What the intents of child runs are called, each with the run's id as `child`."""
STARTED = "refold.start_child"
"""What the intents of child runs are called that go on beside the steps, with their ids too."""
AWAITED = "refold.wait_child"
"""What the intents are called that wait for one of those."""


_NUMBER = re.compile(r"[0-9]+")
_Place = tuple[str, Match | None, str, str]


@dataclass(slots=True)
class Request:
    """A request as it is looked for.

    `within` is the call that it is made in, `n` its number among the equal ones of its lane, and `clear_n` what that
    would be if nobody knew a secret. `state` is what its arguments may refer to.
    """

    phase: str
    within: Match | None
    lane: Lane
    asked: Asked
    n: Number
    clear_n: Number
    state: Any

    @classmethod
    def of(cls, frame: Frame, asked: Asked, state: Any) -> "Request":
        """One more request in a frame."""
        lane = lane_in(frame)
        n = clear_n = lane.number(asked.digest)
        if asked.clear != asked.digest:
            clear_n = lane.number(asked.clear)
        return cls(frame.phase, None if frame.call is None else frame.call.match, lane, asked, n, clear_n, state)

    @property
    def match(self) -> Match:
        """What the request is matched by, as it would be written now."""
        return self.asked.digest, self.n

    def taken_as(self, match: Match) -> Match:
        """What a recorded call is matched by that this request is: others like it count on from there."""
        if match != self.match:
            self.lane.counted(*match)
        return match


class Entry:
    """One recorded call. `taken` says that it was asked for again, `over` that nobody has to wait for it any more."""

    __slots__ = ("effect", "group", "order", "over", "recorded", "taken")

    def __init__(self, effect: Effect, recorded: Recorded, group: "_Group") -> None:
        self.effect = effect
        self.recorded = recorded
        self.group = group
        self.order = group.order_in(lane_name(effect.n))
        self.taken = False
        self.over = False

    @property
    def match(self) -> Match:
        """See Match."""
        return self.effect.digest, self.effect.n

    @property
    def counts(self) -> bool:
        """Whether it must be asked for again: it ended, or may not be made a second time."""
        return self.recorded.outcome is not None or not self.effect.idempotent

    def give(self) -> None:
        """Notes that the caller now goes on with the outcome."""
        self.over = True
        self.order.moved()


class _Lane:
    """The calls of one lane in the order in which they were begun; those before `at` were asked for, or never will.

    `left` counts those that must be asked for and were not.
    """

    __slots__ = ("at", "entries", "left")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.at = 0
        self.left = 0


class _Group:
    """The calls that one hook, or one call, has made: in their lanes, and in the order in which they ended."""

    def __init__(self) -> None:
        self.lanes: dict[str, _Lane] = {}
        self._orders: dict[str, RecordedOrder] = {}
        """Those of hooks that are asked several times at once are apart: who asks them again may do so in turn."""
        self.left = 0
        """How many of its calls must be asked for and were not; actions aside."""

    def order_in(self, lane: str) -> RecordedOrder:
        """In which order the calls of a lane, and of those beside it, have ended."""
        return self._orders.setdefault(asked_as(lane), RecordedOrder())

    def add(self, entry: Entry) -> None:
        """Takes a call in; before any is asked for."""
        if entry.recorded.outcome is not None:
            entry.order.add(entry)
        if entry.effect.action is None:  # actions are begun together: they stand in no lane
            lane = self.lanes.setdefault(lane_name(entry.effect.n), _Lane())
            lane.entries.append(entry)
            lane.left += entry.counts
            self.left += entry.counts

    def take(self, entry: Entry) -> None:
        """Notes that a call is asked for again: what stands before it in its lane is not asked for any more."""
        entry.taken = True
        if entry.effect.action is None:
            lane = self.lanes[lane_name(entry.effect.n)]
            lane.left -= entry.counts
            self.left -= entry.counts
            while lane.at < len(lane.entries) and lane.entries[lane.at].effect.seq <= entry.effect.seq:
                each = lane.entries[lane.at]
                each.over = each.over or not each.taken
                lane.at += 1
        entry.order.moved()

    def skip(self, name: str) -> None:
        """Nobody waits any more for what a lane has not asked for: it has come to something new."""
        for entry in self.lanes[name].entries if name in self.lanes else ():
            entry.over = entry.over or not entry.taken

    def unstarted(self, lane: Lane) -> list[str]:
        """The recorded lanes that this one started, and has not started again so far."""
        begin = started_in(lane.name)
        found = []
        for name in self.lanes:
            number = _NUMBER.match(name.removeprefix(begin)) if name.startswith(begin) else None
            if number is not None and int(number[0]) >= lane.started:
                found.append(name)
        return found


class Journal:
    """The calls and events that a trace has of one step, or of the start of the run.

    `again` holds the intents that a person has told to run again. A cancelled call counts as not recorded: it runs
    again if it may (see `unknown`). `complete` says that nothing is asked for that is not recorded.
    """

    def __init__(
        self,
        effects: Iterable[Effect],
        events: Iterable[Mapping[str, Any]] = (),
        *,
        again: frozenset[int] = frozenset(),
        complete: bool = False,
        value: Callable[[Any], Any] = lambda result: result,
    ) -> None:
        self._entries: dict[Key, Entry] = {}
        self._groups: dict[tuple[str, Match | None], _Group] = {}
        self._alike: dict[_Place, list[Entry]] = {}
        """The calls by where they were made, their lane and name."""
        self._marked: dict[_Place, list[Entry]] = {}
        """Those with marks in their arguments, as far as they were looked at."""
        self._complete = complete
        self._value = value
        self._lock = threading.RLock()
        self._events = Counter(_event_key(e["name"], e.get("data")) for e in events)
        for effect in effects:
            self._add(effect, None, again)

    def _add(self, effect: Effect, parent: Match | None, again: frozenset[int]) -> None:
        key = _key(effect)
        unended = effect.open or effect.cancelled or effect.seq in again
        if key not in self._entries or not unended:
            recorded = (
                Recorded(effect.seq, None)
                if unended
                else Recorded(effect.seq, effect.outcome, effect.result, effect.error, effect.outcome or 0)
            )
            group = self._groups.setdefault((effect.phase, parent), _Group())
            entry = self._entries[key] = Entry(effect, recorded, group)
            group.add(entry)
            if effect.action is None:
                self._alike.setdefault((effect.phase, parent, lane_name(effect.n), effect.name), []).append(entry)
        for child in effect.children:
            self._add(child, (effect.digest, effect.n), again)

    def find(self, request: Request, learn: Callable[[str, str], None]) -> Entry | None:
        """The recorded call that is this request, ended or not, if there is one that nobody has asked for yet.

        Where an earlier attempt knew secrets in its arguments that are not known now, they are learnt.
        """
        asked = request.asked
        with self._lock:
            entry = self._next_in_lane(request, learn)
            if entry is None:
                entry = self.take(request.phase, *request.match)
            if entry is None and asked.clear != asked.digest:
                entry = self.take(request.phase, asked.clear, request.clear_n)
            if entry is None:
                entry = self._marked_like(request, learn) or self._moved(request)
            if entry is not None:
                entry.group.take(entry)
            return entry

    def _next_in_lane(self, request: Request, learn: Callable[[str, str], None]) -> Entry | None:
        """The call that comes next in the lane of a request, if it is this one.

        Where different secrets have the same mark, only the order of a lane tells their calls apart.
        """
        group = self._groups.get((request.phase, request.within))
        lane = group.lanes.get(request.lane.name) if group is not None else None
        if lane is None or lane.at >= len(lane.entries) or (entry := lane.entries[lane.at]).taken:
            return None
        asked = request.asked
        if entry.effect.digest in (asked.digest, asked.clear):
            return entry
        return entry if entry.effect.name == asked.name and self._fits(entry, request, learn) else None

    def _fits(self, entry: Entry, request: Request, learn: Callable[[str, str], None]) -> bool:
        """Whether a call may have been this request, but for secrets that were taken out of its arguments."""
        shown = self._value(entry.effect.args)
        return _has_marks(shown) and fits(
            _plain(shown, request.state), _plain(request.asked.form, None), learn, ordered=False
        )

    def take(self, phase: str, digest: str, n: Number) -> Entry | None:
        """The call of this digest and number, if nobody has asked for it yet."""
        entry = self._entries.get((phase, digest, n))
        return entry if entry is not None and not entry.taken else None

    def _marked_like(self, request: Request, learn: Callable[[str, str], None]) -> Entry | None:
        """The first call not yet asked for that may have been this one, but for a secret taken out of its arguments."""
        place = (request.phase, request.within, request.lane.name, request.asked.name)
        marked = self._marked.get(place)
        if marked is None:
            alike = self._alike.get(place, ())
            marked = [each for each in alike if _has_marks(self._value(each.effect.args))]
        self._marked[place] = marked = [each for each in marked if not each.taken]
        return next((each for each in marked if self._fits(each, request, learn)), None)

    def _moved(self, request: Request) -> Entry | None:
        """The first equal call that another task or thread had made when it was recorded, if the code is known to have
        changed in this: then it asks for the same from elsewhere.
        """
        group = self._groups.get((request.phase, request.within))
        if group is None or not group.left:
            return None
        names = group.lanes if self._complete else group.unstarted(request.lane)
        digests = (request.asked.digest, request.asked.clear)
        equal = [e for name in names for e in group.lanes[name].entries if not e.taken and e.effect.digest in digests]
        return min(equal, key=_seq, default=None)

    def order(self, request: Request) -> RecordedOrder | None:
        """The outcomes that are given before a request that has none: what it comes to is to be given after them."""
        with self._lock:
            group = self._groups.get((request.phase, request.within))
            order = None if group is None else group.order_in(request.lane.name)
            if group is None or order is None or order.over:
                return None
            for name in (request.lane.name, *group.unstarted(request.lane)):
                group.skip(name)
            return None if order.over else order

    def outcome(self, entry: Entry) -> Recorded | None:
        """What a call came to, its result loaded; None where it has no outcome that holds."""
        found = entry.recorded
        if found.outcome is None and found.order != LAST:
            return None
        return Recorded(found.intent, found.outcome, self._value(found.result), found.error, found.order)

    def seen_event(self, name: str, data: Any, clear: tuple[str, Any]) -> bool:
        """Whether the trace already has this event; each recorded one answers once.

        `clear` are its name and data if nobody knew a secret: an earlier attempt may have known others.
        """
        with self._lock:
            for key in (_event_key(name, data), _event_key(*clear)):
                if self._events[key] > 0:
                    self._events[key] -= 1
                    return True
            for key in [key for key, left in self._events.items() if left > 0 and MARKED in key]:
                if fits(orjson.loads(key), [clear[0], clear[1] or {}], ordered=False):
                    self._events[key] -= 1
                    return True
            return False

    def alike(self, request: Request) -> list[Effect]:
        """The calls of the same name in the same place that nobody has asked for yet."""
        with self._lock:
            alike = self._alike.get((request.phase, request.within, request.lane.name, request.asked.name), ())
            return [each.effect for each in alike if not each.taken]

    def left(self, phase: str, within: Match | None = None) -> list[Effect]:
        """The recorded calls of a hook, or of a call, that nobody has asked for; not those that may be made anew."""
        with self._lock:
            group = self._groups.get((phase, within))
            lanes = group.lanes.values() if group is not None else ()
            return [e.effect for lane in lanes if lane.left for e in lane.entries if e.counts and not e.taken]

    def left_in_lane(self, request: Request) -> bool:
        """Whether the lane of a request has calls that must be asked for and were not: then it asks for nothing else.

        So have the tasks and threads that it has not started yet: they had asked before it came to a new request.
        """
        with self._lock:
            group = self._groups.get((request.phase, request.within))
            if group is None or not group.left:
                return False
            lane = group.lanes.get(request.lane.name)
            if lane is not None and lane.left:
                return True
            return any(group.lanes[name].left for name in group.unstarted(request.lane))


def _has_marks(args: Any) -> bool:
    return MARKED in orjson.dumps(args)


def _plain(form: Any, state: Any) -> Any:
    """A form of arguments as plain JSON values, parts of a state in place of their pointers."""
    return orjson.loads(dump(form if state is None else {name: read_form(each, state) for name, each in form.items()}))


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


def _seq(entry: Entry) -> int:
    return entry.effect.seq


def _key(effect: Effect) -> Key:
    return effect.phase, effect.digest, effect.n


def is_entered_again(effect: Effect) -> bool:
    """Whether there is an `ask` inside that has no answer yet, or a child run that has not ended."""
    return any(each.name in (ASK, CHILD, AWAITED) and (each.open or each.cancelled) for each in effect.walk())
