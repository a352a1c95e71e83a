"""Agents in a set: the error of a failed one, and its retries; and which failed runs are not retried."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from refold import Action, AgentModule, Decision, Engine, Observation, RunResult, StateSchema, effect, perform_sync
from refold.modules.agent import Agent, Fail, FunctionGenerator, GenerateParams, GenerationStep, Message, hook
from refold.modules.agent.generators import TransientGeneratorError
from refold.modules.run_sets import run_set
from refold.modules.run_sets.ends import Again, how_again
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
    assert row.figures.error == "TransientGeneratorError: the provider is busy (step 0, decide)"
    assert run_set(of(Busy(0)), ["work"], tmp_path / "set").counts == {"completed": 1}


class Search(StateSchema):
    pass


def look() -> str:
    raise LookupError("nothing is there")


@effect(idempotent=True)
def read() -> str:
    raise LookupError("nothing is there")


class GivesUp(AgentModule[Search]):
    """Ends its run as failed when its tool finds nothing."""

    tools = {"look": look, "read": read}

    def __init__(self, tool: str) -> None:
        self.tool = tool

    def init_state(self, task: str) -> Search:
        return Search()

    def decide(self, state: Search) -> Decision:
        return Decision.act([Action(self.tool)])

    def reduce(self, state: Search, decision: Decision, observation: Observation) -> None:
        state.set_stop("unrecoverable_error", "nothing is there")


class Raises(GivesUp):
    """Performs the tool itself, and so raises its error."""

    def decide(self, state: Search) -> Decision:
        return Decision.final(perform_sync(self.tools[self.tool]))


@pytest.mark.parametrize("tool", ["look", "read"])
@pytest.mark.parametrize("module", [GivesUp, Raises])
def test_a_run_that_failed_by_itself_is_not_run_again(module: type[GivesUp], tool: str) -> None:
    """A worker lost after such an end leaves it to the next one."""
    engine = Engine(module(tool))
    first: RunResult[Search] = engine.run("search")
    assert (first.status, how_again(first.trace)) == ("failed", Again.RESUME)
    again = engine.resume(first.trace)
    assert (again.status, str(again.error), again.final_result) == (first.status, str(first.error), first.final_result)


def test_a_turn_that_a_hook_failed_runs_again(tmp_path: Path) -> None:
    """No effect recorded the failure, but the committed state did."""
    failures = [ConnectionError("the server of the tools is away")]

    @hook(GenerationStep)
    async def checks(event: GenerationStep) -> Fail | None:
        return Fail(error=failures.pop()) if failures else None

    model = Busy(0)
    agent = of(model).model_copy(update={"hooks": [checks]})
    result = run_set(agent, ["work"], tmp_path / "set", limits={"attempts": 2})
    assert result.counts == {"completed": 1}
    assert model.asked == 2
