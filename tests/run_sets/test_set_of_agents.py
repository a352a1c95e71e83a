"""Agents in a set: the error of a failed one, and its retries."""

from collections.abc import Sequence
from pathlib import Path

from refold.modules.agent import Agent, FunctionGenerator, GenerateParams, Message
from refold.modules.agent.generators import TransientGeneratorError
from refold.modules.run_sets import run_set
from refold.modules.run_sets.table import all_rows
from refold.traces.stores import open_store


class Busy:
    """A model that is busy at its first requests, and then answers."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.asked = 0

    def __call__(self, messages: Sequence[Message], params: GenerateParams) -> str:
        self.asked += 1
        if self.asked <= self.times:
            raise TransientGeneratorError("the provider is busy")
        return "done"


def of(model: Busy) -> Agent:
    return Agent(name="worker", model=FunctionGenerator(model, model="busy"), backoff_max_tries=0)


def test_a_busy_provider_is_asked_again(tmp_path: Path) -> None:
    """The failed turn runs again, as its only effect is idempotent."""
    model = Busy(2)
    result = run_set(of(model), ["work"], tmp_path / "set", limits={"attempts": 3})
    assert result.counts == {"completed": 1}
    assert model.asked == 3


def test_a_provider_that_stays_busy_is_of_the_machine(tmp_path: Path) -> None:
    """The task is tried again by the next call, and its row says why."""
    result = run_set(of(Busy(99)), ["work"], tmp_path / "set", limits={"attempts": 2})
    assert result.counts == {"errored": 1}
    store = open_store(tmp_path / "set")
    (row,) = all_rows(store.tasks("set"))
    store.close()
    assert row.figures.error == "TransientGeneratorError: the provider is busy"
    assert run_set(of(Busy(0)), ["work"], tmp_path / "set").counts == {"completed": 1}
