"""What a trace has of one step, for a run that may ask for the same: outcomes, answers, and what had not ended."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..traces import Effect, Step
from .calls import Recorded
from .journal import ASK, Journal, Key

NOT_ANSWERED = "nobody had answered it there"
_NOT_ENDED = "it had not ended there"
_LAST = 1 << 60


@dataclass
class Settled:
    """What a person told of a run's unfinished step when it was forked: answers by request, outcomes by intent."""

    answers: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def write(self, kind: str, members: Mapping[str, Any]) -> None:
        """Takes what `Answers` would write in a trace that is resumed."""
        if kind == "input":
            self.answers |= members["answers"]
        else:
            self.outcomes[members["intent"]] = members


class RecordedStep:
    """What a trace has of one step, for whoever asks for the same."""

    def __init__(self, step: Step | None, settled: Settled, value: Callable[[Any], Any]) -> None:
        effects = step.effects if step is not None else ()
        self.committed = step is not None and step.committed
        self.journal = Journal(effects, value=value)
        self.settled: dict[Key, Recorded] = {}
        """Calls without an outcome of which it is known what came of them."""
        self.open: dict[Key, str] = {}
        """Why other calls that were begun have nothing to take; nothing is said of those that wait for another."""
        self.waits: list[tuple[Mapping[str, Any], tuple[Any] | None]] = []
        """Wait decisions and their answers, if they have one."""
        answers = {**_answers(step), **{name: (None, answer) for name, answer in settled.answers.items()}}
        for effect in _walk(effects):
            if effect.open or effect.cancelled:
                self._unfinished(effect, answers, settled)
        for record in step.records if step is not None else ():
            for request in record["requests"] if record.kind == "wait" else ():
                if request["kind"] == "wait" and "run" not in request["details"]:
                    answer = answers.get(request["id"])
                    self.waits.append((request, None if answer is None else (answer[1],)))

    def _unfinished(self, effect: Effect, answers: Mapping[str, tuple[int | None, Any]], settled: Settled) -> None:
        key = effect.phase, effect.digest, effect.n
        told = settled.outcomes.get(effect.seq)
        if told is not None:
            self.settled[key] = Recorded(effect.seq, None, told.get("result"), told.get("error"), _LAST)
        elif effect.name == ASK and effect.key[:16] in answers:
            seq, answer = answers[effect.key[:16]]
            self.settled[key] = Recorded(effect.seq, seq, answer, None, _LAST)
        elif effect.name == ASK:
            self.open[key] = NOT_ANSWERED
        else:
            waits = any(each.name == ASK and (each.open or each.cancelled) for each in effect.walk())
            self.open[key] = "" if waits else _NOT_ENDED


def _walk(effects: tuple[Effect, ...]) -> Iterator[Effect]:
    for effect in effects:
        yield from effect.walk()


def _answers(step: Step | None) -> dict[str, tuple[int | None, Any]]:
    """What was answered in a step, by request, each with the number of its record."""
    found: dict[str, tuple[int | None, Any]] = {}
    for record in step.records if step is not None else ():
        if record.kind == "input":
            found |= {name: (record.seq, answer) for name, answer in record["answers"].items()}
    return found
