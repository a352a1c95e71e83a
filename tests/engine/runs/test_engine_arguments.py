"""What an Engine is made with and called on is checked at once, with a message that says what to write instead."""

from collections.abc import Callable
from typing import Any

import pytest

from refold import AgentModule, Decision, Engine, Observation, SelectFirst, StateSchema
from refold.errors import EngineUsageError, ExplorationError

made: Any = Engine  # what is tested is wrong on purpose


class Once(AgentModule[StateSchema]):
    def init_state(self, task: str) -> StateSchema:
        return StateSchema()

    def decide(self, state: StateSchema) -> Decision:
        return Decision.final("done")

    def reduce(self, state: StateSchema, decision: Decision, observation: Observation) -> None:
        pass


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: made(Once(), branch=SelectFirst), r"got the class; write SelectFirst\(\)"),
        (lambda: made(Once(), branch="best"), r"such as SelectFirst\(\), got str"),
        (lambda: made(Once(), traces=3), "traces must be the path of a folder, got 3"),
        (lambda: made(Once(), workspace=[]), r"workspace must be the path of a folder, got \[\]"),
        (lambda: made(Once(), stop=3), r"stop must be a list, got 3; write stop=\[...\]"),
        (lambda: made(Once(), observers=print), r"write observers=\[...\]"),
        (lambda: made(Once(), max_children=0), "max_children must be a whole number of at least 1, got 0"),
        (lambda: made(Once(), seed=1.5), "seed must be a whole number"),
        (lambda: made(Once).run("t"), "got the class Once; write Engine"),
        (lambda: made(Once()).fork(7), "a trace is a Trace, the path of its file, or a run's id, got 7"),
        (lambda: made(Once()).resume(None), "or a run's id, got None"),
    ],
)
def test_misuse_is_refused_with_what_to_write_instead(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(EngineUsageError, match=said):
        call()


def test_why_all_candidates_failed_stays_short_at_every_depth() -> None:
    reason = "no"
    for _ in range(5):
        reason = str(ExplorationError({str(place): reason for place in range(3)}))
    assert len(reason) < 3 * 400
    assert ExplorationError({"0": "x" * 5000}).lost == {"0": "x" * 5000}
