"""Children that wait: the run asks for them; answers come at once, or later, in another process too."""

import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from places import HELPERS
from toys.tree import assert_family_holds
from warm_python import warm_python

from refold import (
    UNANSWERED,
    Action,
    AgentModule,
    BeamSearch,
    BestFirst,
    BestOfN,
    Decision,
    Engine,
    MonteCarloTreeSearch,
    Observation,
    RunResult,
    RunStatus,
    StateSchema,
    WaitRequest,
    ask,
    ask_sync,
    perform,
)
from refold.engine import Branch

ran: list[str] = []


class Notes(StateSchema):
    notes: list[Any] = []


def note(text: str) -> str:
    ran.append(text)
    return text


async def question(about: str) -> str:
    said = await perform(note, f"before {about}")
    answer = await ask(f"{about}?", {"type": "string"})
    return f"{said}: {answer}"


def question_in_thread(about: str) -> str:
    return f"{ask_sync(f'{about}?')}"


def asks(about: str, tool: str = "question") -> Decision:
    return Decision.act(Action(tool, {"about": about}))


def notes(text: str) -> Decision:
    return Decision.act(Action("note", {"text": text}))


def waits(prompt: str, **options: Any) -> Decision:
    return Decision.wait(prompt=prompt, **options)


class Asks(AgentModule[Notes]):
    tools = {"note": note, "question": question, "question_in_thread": question_in_thread}

    def __init__(self, *decisions: Decision) -> None:
        self.decisions = decisions

    def init_state(self, task: str) -> Notes:
        return Notes()

    def decide(self, state: Notes) -> Decision:
        if state.current_step >= len(self.decisions):
            return Decision.final(str(len(state.notes)))
        return self.decisions[state.current_step]

    def reduce(self, state: Notes, decision: Decision, observation: Observation) -> None:
        if decision.mode == "act":
            state.notes += [result.output if result.ok else result.error for result in observation.results]
        elif decision.mode == "wait":
            state.notes.append(observation.value)


def longest(state: Notes) -> float:
    return float(sum(len(str(each)) for each in state.notes))


SEARCHES = [
    BestOfN(longest, steps=1),
    BestOfN(longest),
    BeamSearch(3, 3, longest),
    BestFirst(longest),
    MonteCarloTreeSearch(longest),
]
by_all = pytest.mark.parametrize("strategy", SEARCHES, ids=lambda s: f"{type(s).__name__}{getattr(s, 'steps', '')}")
THREE = Decision.branch([asks("a"), waits("b"), notes("c")])


def started(engine: Engine) -> RunResult:
    ran.clear()
    result: RunResult = anyio.run(engine.arun, "t")
    return result


def resumed(engine: Engine, result: RunResult, value: Any = UNANSWERED, **options: Any) -> RunResult:
    result = anyio.run(partial(engine.aresume, result.trace, value, **options))
    return result


def answer_of(request: WaitRequest) -> str:
    return {"a": "yes", "b": "well, it depends"}[str(request.prompt)[:1]]


@by_all
def test_a_handler_is_inherited_by_children(strategy: Any) -> None:
    asked: list[WaitRequest] = []

    def answers(request: WaitRequest) -> str:
        asked.append(request)
        return answer_of(request)

    engine = Engine(Asks(THREE), branch=strategy, on_wait=answers)
    result = started(engine)
    assert_family_holds(engine, result)
    assert result.state.notes == ["well, it depends"]
    assert sorted(str(request.prompt) for request in asked) == ["a?", "b"]
    assert result.waiting == []
    assert not [r for r in result.trace.records if r.kind in ("wait", "input")], "a child's questions are its own"


@by_all
@pytest.mark.parametrize("folder", [False, True], ids=["memory", "files"])
def test_without_a_handler_the_run_shows_what_its_children_ask(strategy: Any, folder: bool, tmp_path: Path) -> None:
    engine = Engine(Asks(THREE), branch=strategy, traces=tmp_path if folder else None)
    result = started(engine)
    assert_family_holds(engine, result)
    seen = 0
    while result.status == RunStatus.waiting:
        assert result.steps == 0
        assert [r.to_dict() for r in result.waiting] == list(result.trace.waiting)
        for request in result.waiting:
            child = result.trace.relative(request.details["run"])
            assert request.id in [each["id"] for each in child.waiting]
            assert request.prompt in ("a?", "b")
        assert resumed(engine, result).waiting == result.waiting, "no answer changes nothing"
        request = result.waiting[-1]
        seen += 1
        result = resumed(engine, result, answer_of(request), request=request.id)
        assert_family_holds(engine, result)
    assert seen == 2
    assert result.state.notes == ["well, it depends"]
    assert sorted(ran) == ["before a", "c"]
    assert [r for r in result.trace.records if r.kind == "branch" and "chosen" in r]


def test_children_of_children_wait_too() -> None:
    module = Asks(Decision.branch([Decision.branch([asks("a"), waits("b")]), notes("c")]))
    for strategy in (BestOfN(longest), BeamSearch(4, 4, longest)):
        engine = Engine(module, branch=strategy)
        result = started(engine)
        assert sorted(str(request.prompt) for request in result.waiting) == ["a?", "b"]
        result = resumed(engine, result, {r.id: answer_of(r) for r in result.waiting})
        assert_family_holds(engine, result)
        assert result.state.notes == ["well, it depends"]
        assert sorted(ran) == ["before a", "c"]


def test_a_run_that_waits_in_its_children_waits_only_while_none_of_them_works() -> None:
    worked: list[int] = []

    async def work(text: str) -> str:
        for k in range(60):
            await anyio.sleep(0.001)
            worked.append(k)
        return text

    class Works(Asks):
        tools = {**Asks.tools, "note": work}

    engine = Engine(Works(Decision.branch([waits("b"), notes("c")])), branch=BestOfN(longest, steps=1))
    result = started(engine)
    assert result.status == RunStatus.waiting
    assert len(worked) == 60
    result = resumed(engine, result, "well")
    assert len(worked) == 60
    assert result.state.notes == ["well"]


def test_a_strategy_may_ask_a_person_which_to_take() -> None:
    async def chosen_by_a_person(branch: Branch) -> int:
        labels = [str(candidate.actions[0].args["text"]) for candidate in branch.root.candidates]
        return labels.index(await ask("which?", {"enum": labels}))

    class Person:
        async def choose(self, branch: Branch) -> int:
            return await chosen_by_a_person(branch)

    engine = Engine(Asks(Decision.branch([notes("c"), notes("d")])), branch=Person())
    result = started(engine)
    assert [(request.prompt, request.schema) for request in result.waiting] == [("which?", {"enum": ["c", "d"]})]
    result = resumed(engine, result, "d")
    assert_family_holds(engine, result)
    assert result.state.notes == ["d"]


SCRIPT = """
import sys
sys.path[:0] = {folders!r}
from test_branch_waits import *
engine = Engine(Asks(THREE), branch=BeamSearch(3, 3, longest), traces=sys.argv[1])
if sys.argv[2] == "start":
    result = engine.run("t")
else:
    result = engine.resume(sys.argv[2], sys.argv[4], request=sys.argv[3])
print(result.run_id, result.status, *[f"{{request.id}}={{request.prompt}}" for request in result.waiting])
print(result.state.notes if result.state else None, ran)
"""


def test_each_answer_may_come_in_another_process(tmp_path: Path) -> None:
    def process(*arguments: str) -> tuple[list[str], str]:
        script = SCRIPT.format(folders=[str(Path(__file__).parent), str(HELPERS)])
        done = subprocess.run(
            [*warm_python(), "-c", script, str(tmp_path), *arguments], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        first, second = done.stdout.decode().splitlines()
        return first.split(), second

    (run_id, status, *open_), _ = process("start")
    assert status == "waiting"
    ids = {prompt: name for name, _, prompt in (each.partition("=") for each in open_)}
    (_, status, *open_), told = process(run_id, ids["a?"], "yes")
    assert (status, open_, told) == ("waiting", [f"{ids['b']}=b"], "[] []")
    (_, status), told = process(run_id, ids["b"], "well, it depends")
    assert (status, told) == ("completed", "['well, it depends'] []")
