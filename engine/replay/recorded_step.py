"""A step of a fork's source, looked up by request."""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...traces import Effect, Step
from ...traces.file.children import children_of
from ..effects.call import LAST, Recorded
from ..effects.journal.journal import ASK, Journal, is_entered_again
from .unknown_effects import fate_id

NOT_ANSWERED = "nobody had answered it in the source run"
NOT_ENDED = "the call had not ended in the source run"


@dataclass
class Settled:
    """A person's answers and outcomes for a fork's unfinished step.

    `answers` are by request id, `outcomes` by the number of the call's intent.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def write(self, kind: str, members: Mapping[str, Any]) -> None:
        """Keep a record that `Answers` would write to a resumed trace."""
        if kind == "input":
            self.answers |= members["answers"]
        else:
            self.outcomes[members["intent"]] = members


class RecordedStep:
    """The recorded calls and answers of one step, if it exists."""

    def __init__(
        self,
        run_id: str,
        step: Step | None,
        settled: Settled,
        value: Callable[[Any], Any],
        is_open: Callable[[str], bool],
    ) -> None:
        """Read the recorded calls and answers.

        `is_open` returns whether a background child, by its id, had not ended.
        """
        effects = step.effects if step is not None else ()
        self.committed = step is not None and step.committed
        starts = [child for record in (step.records if step is not None else ()) for child in children_of(record)]
        opened = {start.record.seq for start in starts if start.kind == "background" and is_open(start.run_id)}
        self.again = frozenset(seq for effect in effects for seq in _around(effect, opened))
        """The intents of calls that start a background child which had not ended, and of calls around them."""
        self.journal = Journal(effects, again=self.again, value=value)
        self.settled: dict[int, Recorded] = {}
        """Outcomes that a person has reported for unknown effects, or answers to an `ask`, by intent."""
        self.open: dict[int, str] = {}
        """Why a call without an outcome cannot be reused, by intent; `""` if the call waits for one inside it."""
        self.waits: list[tuple[Mapping[str, Any], tuple[Any] | None]] = []
        """The requests of wait decisions, each with its answer in a tuple, or None."""
        self.answers = {**_answers(step), **{name: (None, answer) for name, answer in settled.answers.items()}}
        """The answers by request, each with the number of its record, or None."""
        for effect in _walk(effects):
            if step is not None and (effect.open or effect.cancelled):
                told = settled.outcomes.get(effect.seq) or self._fate(fate_id(run_id, step.index, effect))
                self._unfinished(effect, told)
        for record in step.records if step is not None else ():
            for request in record["requests"] if record.kind == "wait" else ():
                if request["kind"] == "wait" and "run" not in request["details"]:
                    answer = self.answers.get(request["id"])
                    self.waits.append((request, None if answer is None else (answer[1],)))

    def _fate(self, request: str) -> Mapping[str, Any] | None:
        """Return the outcome of an unknown effect that a person reported."""
        _, answer = self.answers.get(request, (None, None))
        if not isinstance(answer, Mapping) or "retry" in answer:
            return None
        return (
            {"result": answer["ran"]} if "ran" in answer else {"error": {"type": "Failed", "message": answer["failed"]}}
        )

    def _unfinished(self, effect: Effect, told: Mapping[str, Any] | None) -> None:
        key, answers = effect.seq, self.answers
        if told is not None:
            self.settled[key] = Recorded(effect.seq, None, told.get("result"), told.get("error"), LAST)
        elif effect.name == ASK and effect.key[:16] in answers:
            seq, answer = answers[effect.key[:16]]
            self.settled[key] = Recorded(effect.seq, seq, answer, None, LAST)
        elif effect.name == ASK:
            self.open[key] = NOT_ANSWERED
        else:
            self.open[key] = "" if is_entered_again(effect) else NOT_ENDED


def _around(effect: Effect, calls: Container[int]) -> list[int]:
    """Return the intents of calls inside an effect, and around them."""
    inner = [seq for child in effect.children for seq in _around(child, calls)]
    return [effect.seq, *inner] if inner or effect.seq in calls else []


def _walk(effects: tuple[Effect, ...]) -> Iterator[Effect]:
    for effect in effects:
        yield from effect.walk()


def _answers(step: Step | None) -> dict[str, tuple[int | None, Any]]:
    """Return the answers of a step with their record numbers, by request."""
    found: dict[str, tuple[int | None, Any]] = {}
    for record in step.records if step is not None else ():
        if record.kind == "input":
            found |= {name: (record.seq, answer) for name, answer in record["answers"].items()}
    return found
