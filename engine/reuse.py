"""Counterfactual replay: a fork takes what another run recorded, for as long as it asks for the same."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from ..traces import Step, Trace, split_pointer
from .calls import Recorded
from .journal import Journal
from .result import WaitRequest
from .state import StateSchema, dump

Tell = Callable[[int, str, str, Any], None]


class Reuse:
    """The recorded outcomes and answers of `source` from step `at` on.

    The first request that is not as recorded ends it: `tell(step, phase, name, args)` is called once, and from there
    the run is live. Arguments that refer to the state are the same where the state is the same in that place.
    """

    def __init__(self, source: Trace, at: int, tell: Tell) -> None:
        self._source = source
        self._at = at
        self._tell = tell
        self._step: int | None = None
        self._journal = Journal(())
        self._recorded: Step | None = None
        self.live = False

    def take(self, step: int, phase: str, digest: str, n: int, name: str, args: bytes, state: Any) -> Recorded | None:
        """The recorded outcome of this request; None from the first one on that was not made."""
        if self.live:
            return None
        self._enter(step)
        found = self._journal.take(phase, digest, n)
        if found is not None and (b'"$state"' not in args or self._same_parts(orjson.loads(args), state)):
            return found
        self._end(step, phase, name, orjson.loads(args))
        return None

    def answer(self, step: int, request: WaitRequest) -> tuple[Any] | None:
        """The recorded answer to a wait decision that asked the same."""
        if self.live:
            return None
        self._enter(step)
        answers: dict[str, Any] = {}
        asked: list[Any] = []
        for record in self._recorded.records if self._recorded is not None else ():
            if record.kind == "input":
                answers |= record["answers"]
            elif record.kind == "wait":
                asked += [r for r in record["requests"] if r["kind"] == "wait"]
        for each in asked:
            if (each["prompt"], each["schema"]) == (request.prompt, request.schema) and each["id"] in answers:
                return (answers[each["id"]],)
        self._end(step, "wait", "wait", {"prompt": request.prompt})
        return None

    def _enter(self, step: int) -> None:
        if step == self._step:
            return
        self._step = step
        steps, at = self._source.steps, self._at + step
        self._recorded = steps[at] if at < len(steps) else self._source.unfinished if at == len(steps) else None
        effects = self._recorded.effects if self._recorded is not None else ()
        self._journal = Journal(effects, value=self._source.value)

    def _end(self, step: int, phase: str, name: str, args: Any) -> None:
        self.live = True
        self._tell(step, phase, name, args)

    def _same_parts(self, args: Any, state: StateSchema | None) -> bool:
        """Whether each part of the state that the arguments refer to is as it was."""
        if state is None or self._step is None:
            return False
        was, now = self._source.shared_state(self._at + self._step), orjson.loads(dump(state))
        return all(orjson.dumps(_at(was, path)) == orjson.dumps(_at(now, path)) for path in _pointers(args))


def _pointers(args: Any) -> Iterator[str]:
    if isinstance(args, dict):
        if list(args) == ["$state"]:
            yield args["$state"]
            return
        args = list(args.values())
    if isinstance(args, list):
        for each in args:
            yield from _pointers(each)


def _at(doc: Any, pointer: str) -> Any:
    for token in split_pointer(pointer):
        if isinstance(doc, dict):
            doc = doc.get(token)
        else:
            doc = doc[int(token)] if isinstance(doc, list) and token.isdecimal() and int(token) < len(doc) else None
    return doc
