"""Branches: within branches, asked for one by one, judged, lost, chosen wrongly; each replays and verifies."""

from collections import Counter
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import anyio
import pytest
from trees import BUDGET, Place, Taking, Tree, children, choices, explore, sound, value

from refold import (
    Action,
    AgentModule,
    BeamSearch,
    BestFirst,
    BestOfN,
    Decision,
    Engine,
    EngineUsageError,
    MaxStepsCriteria,
    MaxTokensCriteria,
    MonteCarloTreeSearch,
    Observation,
    RuntimeBudget,
    SelectBest,
    SelectFirst,
    StagnationCriteria,
    StateSchema,
    StopReason,
    Task,
    charge,
    effect,
    emit,
    new_id,
    perform,
    rng,
    verify,
)
from refold.engine import Branch, Node
from refold.traces import family


class Menu(StateSchema):
    eaten: list[str] = []
    ids: list[str] = []


def dish(name: str) -> str:
    return name


def eat(*names: str) -> Decision:
    return Decision.act([Action("dish", {"name": name}) for name in names])


class Eats(AgentModule[Menu]):
    """Decides what it is given, one decision a step, and notes what came of it."""

    tools = {"dish": dish}

    def __init__(self, *decisions: Decision) -> None:
        self.decisions = decisions

    def init_state(self, task: str) -> Menu:
        return Menu()

    def decide(self, state: Menu) -> Decision:
        if state.current_step >= len(self.decisions):
            return Decision.final("full")
        return self.decisions[state.current_step]

    def reduce(self, state: Menu, decision: Decision, observation: Observation) -> None:
        state.eaten += [result.output for result in observation.results]


def last_letter(state: Menu) -> float:
    return float(ord(state.eaten[-1][-1])) if state.eaten else 0.0


def best_letter(state: Menu, decision: Decision) -> float:
    if decision.mode == "branch":
        several = () if isinstance(decision.candidates, int) else decision.candidates
        return max([best_letter(state, each) for each in several], default=0.0)
    return float(ord(decision.actions[-1].args["name"][-1])) if decision.actions else 0.0


SEARCHES: dict[str, Any] = {
    "first": SelectFirst(),
    "best": SelectBest(best_letter),
    "n": BestOfN(last_letter),
    "n1": BestOfN(last_letter, steps=1),
    "beam": BeamSearch(20, 9, last_letter),
    "best first": BestFirst(last_letter, 50),
    "tree": MonteCarloTreeSearch(last_letter, 50),
}
everywhere = pytest.mark.parametrize("folder", [False, True], ids=["memory", "files"])
by_all = pytest.mark.parametrize("name", SEARCHES)


# branches within branches

DEEP = Decision.branch(
    [
        Decision.branch([eat("a"), Decision.branch([eat("b"), eat("x"), Decision.branch([eat("c"), eat("d")])])]),
        eat("e"),
        Decision.branch([Decision.branch([Decision.branch([eat("f")])])]),
    ]
)


@by_all
@everywhere
def test_a_candidate_that_is_a_branch_works_at_every_depth(name: str, folder: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"traces": tmp_path} if folder else {}
    result = explore(SEARCHES[name], Eats(DEEP), **options)
    assert result.error is None
    assert result.stop_reason == "final"
    first_end = "e"  # what has not been eaten yet is rated 0, so best-first search takes the first end
    assert result.state.eaten == {"first": ["a"], "best first": [first_end]}.get(name, ["x"])
    assert family(result.trace).run.run_id == result.run_id


@by_all
def test_branches_in_every_step_of_a_run(name: str) -> None:
    module = Eats(
        Decision.branch([eat("a"), Decision.branch([eat("b"), eat("c")])]),
        eat("m"),
        Decision.branch([Decision.branch([eat("o"), eat("n")]), eat("k", "l")]),
    )
    result = explore(SEARCHES[name], module)
    assert result.state.eaten == (["a", "m", "o"] if name == "first" else [*result.state.eaten[:1], "m", "o"])
    assert result.stop_reason == "final"


def test_selecting_within_branches_tells_each_choice() -> None:
    result = explore(SelectBest(best_letter), Eats(DEEP))
    assert [choice["chosen"] for choice in choices(result.trace)] == [{"candidate": n} for n in (0, 1, 1)]
    assert choices(result.trace)[0]["scores"] == {"0": 120.0, "1": 101.0, "2": 102.0}
    step = result.trace.steps[0]
    assert step.decision is not None
    assert step.decided is not None
    assert (step.decided["mode"], step.decision["mode"]) == ("branch", "act")


class Asked(Eats):
    """Asks to be asked, and proposes something else each time, by chance."""

    async def decide(self, state: Menu, candidate: int | None = None) -> Decision:  # type: ignore[override]
        if state.current_step == 2:
            return Decision.final("full")
        if candidate is None:
            return Decision.branch(3, rationale="let me think")
        emit("thinking", candidate=candidate)
        said = await perform(think, candidate)
        if candidate == 1:
            return Decision.branch([eat(f"{said}{rng().choice('uvw')}"), eat("z")], meta={"id": new_id()})
        return eat(f"{said}{candidate}")


async def think(n: int) -> str:
    for _ in range(3 - n):
        await anyio.sleep(0)
    return "abc"[n]


@by_all
@everywhere
def test_a_number_of_candidates_asks_decide_so_often(name: str, folder: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"traces": tmp_path} if folder else {}
    strategy = SEARCHES[name]
    if name not in ("first", "best"):
        strategy = replace(strategy, score=lambda state: float(sum(ord(each[-1]) for each in state.eaten)))
    result = explore(strategy, Asked(), **options)
    assert result.error is None
    assert result.state.eaten == {"first": ["a0", "a0"], "best first": ["c2", "c2"]}.get(name, ["z", "z"])
    asked = [r for r in result.trace.records if r.kind == "decide" and "asked" in r]
    assert asked[0]["asked"] == 3
    assert len(asked[0]["decision"]["candidates"]) == 3
    assert asked[0]["decision"]["rationale"] == "let me think"
    assert {e["data"]["candidate"] for e in result.trace.steps[0].events} == {0, 1, 2}


class AskedWithin(Eats):
    """Asks to be asked within what it was asked for."""

    async def decide(self, state: Menu, candidate: int | None = None) -> Decision:  # type: ignore[override]
        if state.current_step == 1:
            return Decision.final("full")
        said = await perform(think, (candidate or 0) % 3)
        if candidate is None:
            return Decision.branch([Decision.branch(3), eat("e"), Decision.branch([Decision.branch(2)])])
        if candidate == 2:
            return Decision.branch([eat(f"{said}y"), Decision.branch([Decision.branch(2), eat("x")])])
        return eat(f"{said}{candidate}")


@by_all
@everywhere
def test_being_asked_within_what_was_asked_for(name: str, folder: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"traces": tmp_path} if folder else {}
    result = explore(SEARCHES[name], AskedWithin(), **options)
    assert result.error is None
    assert result.state.eaten == {"first": ["a0"], "best": ["e"], "best first": ["e"]}.get(name, ["cy"])


def likes_to_be_asked(state: Menu, decision: Decision) -> float:
    return float(decision.mode == "branch") + float(isinstance(decision.candidates, int))


def test_selecting_what_asks_within_what_was_asked_for() -> None:
    result = explore(SelectBest(likes_to_be_asked), AskedWithin())
    assert [r["asked"] for r in result.trace.records if r.kind == "decide" and "asked" in r] == [3, 2]
    assert result.state.eaten == ["a0"]


def test_being_asked_depends_on_the_seed_alone() -> None:
    def proposed(seed: int, max_children: int) -> Any:
        result = explore(SelectFirst(), Asked(), seed=seed, max_children=max_children)
        return [r["decision"] for r in result.trace.records if r.kind == "decide"]

    assert proposed(3, 1) == proposed(3, 9)
    assert proposed(3, 9) != proposed(4, 9)


def test_no_more_candidates_are_asked_for_at_a_time_than_children_may_run() -> None:
    at_work = most = 0

    class Many(Asked):
        async def decide(self, state: Menu, candidate: int | None = None) -> Decision:  # type: ignore[override]
            nonlocal at_work, most
            if candidate is None:
                return Decision.branch(40) if state.current_step == 0 else Decision.final("x")
            at_work += 1
            most = max(at_work, most)
            await anyio.sleep(0.001)
            at_work -= 1
            return eat(str(candidate))

    assert explore(SelectFirst(), Many(), max_children=4).state.eaten == ["0"]
    assert most == 4


def test_a_candidate_that_cannot_be_had_fails_the_run_with_its_error() -> None:
    class Breaks(Asked):
        async def decide(self, state: Menu, candidate: int | None = None) -> Decision:  # type: ignore[override]
            if candidate is not None:
                raise LookupError(f"no idea {candidate}")
            return Decision.branch(3)

    result = explore(SelectFirst(), Breaks())
    assert result.status == "failed"
    assert result.error is not None
    assert (result.error.type, result.error.message) == ("LookupError", "no idea 0")


def test_decide_that_takes_no_candidate_is_told_how() -> None:
    result = explore(SelectFirst(), Eats(Decision.branch(2)))
    assert "take `candidate` as a parameter" in str(result.error)


# scores


@effect(name="judged")
async def judge_model(eaten: list[str]) -> float:
    await anyio.sleep(0)
    charge(tokens_in=10, tokens_out=1, cost=0.5)
    return last_letter(Menu(eaten=eaten))


async def judged(state: Menu) -> float:
    emit("judging", eaten=list(state.eaten))
    return await perform(judge_model, list(state.eaten))


JUDGED = [
    BestOfN(judged, steps=1),
    BeamSearch(3, 4, judged),
    BestFirst(judged),
    MonteCarloTreeSearch(judged, 9),
]


@pytest.mark.parametrize("strategy", JUDGED, ids=lambda strategy: type(strategy).__name__)
@everywhere
def test_a_score_may_perform_effects_which_are_the_runs_own(strategy: Any, folder: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"traces": tmp_path} if folder else {}
    result = explore(strategy, Eats(Decision.branch([eat("a"), eat("c"), eat("b")])), **options)
    assert result.state.eaten == ["c"]
    effects = [e for e in result.trace.steps[0].effects if e.phase == "branch"]
    assert {e.name for e in effects} == {"judged"}
    assert len(effects) == 3
    assert result.usage.tokens == 33
    assert result.usage.cost == 1.5


async def judged_candidate(state: Menu, decision: Decision) -> float:
    return await perform(judge_model, [str(action.args["name"]) for action in decision.actions])


def test_a_judge_may_select_too() -> None:
    result = explore(SelectBest(judged_candidate), Eats(Decision.branch([eat("a"), eat("c"), eat("b")])))
    assert result.state.eaten == ["c"]
    assert [e.name for e in result.trace.steps[0].effects if e.phase == "branch"] == ["judged"] * 3


def test_judges_are_asked_several_at_a_time_and_not_more_than_that() -> None:
    at_work, seen = 0, list[int]()

    async def slow(state: Menu) -> float:
        nonlocal at_work
        at_work += 1
        seen.append(at_work)
        await anyio.sleep(0.002)
        at_work -= 1
        return 1.0

    explore(BestOfN(slow), Eats(Decision.branch([eat(str(n)) for n in range(20)])), max_children=5)
    assert len(seen) == 20
    assert max(seen) == 5


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (float("nan"), "gave nan"),
        (float("inf"), "gave inf"),
        (10**400, "gave 1000"),
        (True, "gave True"),
        (None, "gave None"),
        ("7", "gave '7'"),
        ([1], r"gave [1]"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("strategy", [BestOfN, SelectBest])
def test_a_score_that_is_no_number_fails_the_run_and_says_which(strategy: Any, given: Any, told: str) -> None:
    def silly(*_: Any) -> Any:
        return given

    result = explore(strategy(silly), Eats(Decision.branch([eat("a"), eat("b")])))
    assert result.status == "failed"
    assert "the score of candidate 0 must be a finite number, silly" in str(result.error)
    assert told in str(result.error)


def test_a_score_that_raises_fails_the_run_with_its_error() -> None:
    async def broken(state: Menu) -> float:
        raise ZeroDivisionError("a judge divided")

    for score in (broken, lambda state: 1 / 0):
        result = explore(BestOfN(score), Eats(Decision.branch([eat("a"), eat("b")])))
        assert result.status == "failed"
        assert result.error is not None
        assert (result.error.type, result.error.phase) == ("ZeroDivisionError", "branch")


def test_numbers_of_other_kinds_are_scores_too() -> None:
    def thirds(state: Menu) -> Any:
        return Fraction(len(state.eaten[0]), 3)

    result = explore(BestOfN(thirds), Eats(Decision.branch([eat("a"), eat("bb")])))
    assert result.state.eaten == ["bb"]


def test_a_score_cannot_change_the_state() -> None:
    def greedy(state: Menu) -> float:
        state.eaten.append("more")
        return 1.0

    result = explore(BestOfN(greedy), Eats(Decision.branch([eat("a"), eat("b")])))
    assert result.error is not None
    assert result.error.type == "FrozenStateError"


# candidates that are lost


class Fragile(Eats):
    """Breaks in `reduce` at what is called bad, and with a secret at what is called secret."""

    def reduce(self, state: Menu, decision: Decision, observation: Observation) -> None:
        super().reduce(state, decision, observation)
        if state.eaten and state.eaten[-1].startswith("bad"):
            raise ValueError(f"{state.eaten[-1]} cannot be eaten")


@pytest.mark.parametrize("name", [name for name in SEARCHES if name not in ("first", "best")])
@everywhere
def test_a_child_that_fails_is_a_candidate_that_lost(name: str, folder: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"traces": tmp_path} if folder else {}
    module = Fragile(Decision.branch([eat("bad z"), eat("b"), eat("a")]))
    result = explore(SEARCHES[name], module, **options)
    assert result.state.eaten == ["b"]
    (choice,) = choices(result.trace)
    assert choice["lost"] == {"0": "ValueError: bad z cannot be eaten (step 0, reduce)"}
    assert "0" not in choice["scores"]
    lost = children(result.trace)[0]
    assert lost.status == "failed"


@pytest.mark.parametrize("name", [name for name in SEARCHES if name not in ("first", "best")])
def test_all_that_fail_fail_the_run_which_says_why_for_each(name: str) -> None:
    result = explore(SEARCHES[name], Fragile(Decision.branch([eat("bad z"), eat("bad y")])))
    assert (result.status, result.steps) == ("failed", 0)
    assert result.error is not None
    assert result.error.type == "ExplorationError"
    assert "candidate 0: ValueError: bad z" in result.error.message
    assert "candidate 1: ValueError: bad y" in result.error.message


@pytest.mark.parametrize("name", ["beam", "best first", "tree"])
def test_what_is_lost_further_down_leaves_what_is_there(name: str) -> None:
    module = Fragile(Decision.branch([eat("a"), eat("b")]), Decision.branch([eat("bad z"), eat("bad y")]))
    result = explore(SEARCHES[name], module)
    assert result.status == "failed"
    assert "bad y" in str(result.error)


def test_a_child_may_fail_in_decide_and_in_its_own_branch() -> None:
    class Worse(Fragile):
        def decide(self, state: Menu) -> Decision:
            if state.eaten == ["a"]:
                raise LookupError("nothing to say")
            return super().decide(state)

    module = Worse(Decision.branch([eat("a"), eat("b"), eat("c")]), Decision.branch([eat("bad z"), eat("bad y")]))
    result = explore(BestOfN(last_letter), module)
    assert result.error is not None
    assert result.error.message.startswith("all candidates failed: candidate 0: LookupError: nothing to say")
    assert (
        "candidate 2: ExplorationError: all candidates failed: candidate 0: ValueError: bad z" in result.error.message
    )


def test_a_failed_exploration_is_tried_again_when_it_is_resumed(tmp_path: Path) -> None:
    broken = True

    class Mended(Eats):
        def reduce(self, state: Menu, decision: Decision, observation: Observation) -> None:
            super().reduce(state, decision, observation)
            if broken and state.eaten:
                raise ValueError("not today")

    engine = Engine(Mended(Decision.branch([eat("a"), eat("b")])), branch=BestOfN(last_letter), traces=tmp_path)
    first = engine.run("t")
    assert first.status == "failed"
    assert engine.resume(first.trace).status == "failed"
    broken = False
    result = engine.resume(first.trace)
    assert result.state.eaten == ["b"]
    sound(engine, result)


# strategies that do wrong


async def nothing(branch: Branch) -> Any:
    return None


async def beyond(branch: Branch) -> Any:
    return 3


async def before(branch: Branch) -> Any:
    return -1


async def truth(branch: Branch) -> Any:
    return True


async def the_root(branch: Branch) -> Any:
    return branch.root


async def forged(branch: Branch) -> Any:
    (node,) = await branch.grow(branch.root, candidates=[0])
    return Node(node.place, node.state, ())


async def no_such_candidate(branch: Branch) -> Any:
    return await branch.grow(branch.root, candidates=[0, 7])


async def grows_a_stranger(branch: Branch) -> Any:
    return await branch.grow(Node("0", branch.root.state, branch.root.candidates))


async def no_steps(branch: Branch) -> Any:
    return await branch.grow(branch.root, steps=0)


async def a_list(branch: Branch) -> Any:
    return await branch.grow(branch.root)


async def takes_the_lost(branch: Branch) -> Any:
    return (await branch.grow(branch.root))[0]


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (nothing, "Taking.choose returned None; it must return the number of a candidate (0 to 1) or a node that grew"),
        (beyond, "returned 3"),
        (before, "returned -1"),
        (truth, "returned True"),
        (the_root, "returned Node(place=''"),
        (forged, "returned Node(place='0'"),
        (no_such_candidate, "the node at '' has no candidate 7"),
        (grows_a_stranger, "the node at '0' is not one of this branch"),
        (no_steps, "at least 1, got 0"),
        (a_list, "returned [Node"),
        (takes_the_lost, "Taking chose candidate 0, which failed: ValueError: bad z"),
    ],
)
def test_a_strategy_that_does_wrong_fails_the_run_and_is_told(work: Any, told: str) -> None:
    result = explore(Taking(work), Fragile(Decision.branch([eat("bad z"), eat("b")])))
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.type == "DecisionError"
    assert told in result.error.message


def test_a_strategy_that_is_not_async_is_told() -> None:
    class Sync:
        def choose(self, branch: Branch) -> int:
            return 0

    result = explore(Sync(), Eats(Decision.branch([eat("a")])))
    assert "async def choose" in str(result.error)


@pytest.mark.parametrize("given", [SelectFirst, None, "first", lambda branch: 0])
def test_what_is_no_strategy_is_refused_by_the_engine(given: Any) -> None:
    with pytest.raises(EngineUsageError, match="SelectFirst"):
        Engine(Eats(), branch=given)


async def twice_at_once(branch: Branch) -> Any:
    found: list[list[Node]] = []

    async def grow(*numbers: int) -> None:
        found.append(await branch.grow(branch.root, candidates=numbers))

    async with anyio.create_task_group() as group:
        group.start_soon(grow, 0, 0, 1)
        group.start_soon(grow, 1, 0)
        group.start_soon(grow, 1)
    again = await branch.grow(branch.root)
    assert {id(node) for nodes in found for node in nodes} == {id(node) for node in again}
    return again[1]


async def rated_twice_at_once(branch: Branch) -> Any:
    first, second = await branch.grow(branch.root)
    assert await branch.rate(first, second, first, score=judged) == [97.0, 98.0, 97.0]
    assert await branch.rate(first, score=lambda state: 0.0) == [97.0]
    return second


def test_a_place_grows_once_and_is_rated_once_however_often_it_is_asked() -> None:
    for work in (twice_at_once, rated_twice_at_once):
        result = explore(Taking(work), Eats(Decision.branch([eat("a"), eat("b")])))
        assert result.error is None
        assert result.state.eaten == ["b"]
        assert len(children(result.trace)) == 2
        assert sum(e.name == "judged" for e in result.trace.steps[0].effects) in (0, 2)


async def rates_the_lost(branch: Branch) -> Any:
    nodes = await branch.grow(branch.root)
    scores = await branch.rate(*nodes, score=last_letter)
    return nodes[scores.index(max(scores))]


def test_a_lost_node_is_rated_below_all_and_nobody_is_asked() -> None:
    result = explore(Taking(rates_the_lost), Fragile(Decision.branch([eat("bad z"), eat("b")])))
    assert result.state.eaten == ["b"]
    result = explore(Taking(rates_the_lost), Fragile(Decision.branch([eat("bad z"), eat("bad y")])))
    assert "all candidates failed" in str(result.error)


async def explores_and_selects(branch: Branch) -> Any:
    await branch.grow(branch.root, candidates=[1])
    await branch.weigh(branch.root, best_letter)
    return 0


def test_a_strategy_may_explore_and_then_select() -> None:
    result = explore(Taking(explores_and_selects), Eats(Decision.branch([eat("a"), eat("b")])))
    assert result.state.eaten == ["a"]
    assert choices(result.trace)[0]["scores"] == {"0": 97.0, "1": 98.0}


async def asks_a_model(branch: Branch) -> Any:
    nodes = await branch.grow(branch.root)
    scores = [await perform(judge_model, list(node.state.eaten)) for node in nodes]
    return nodes[int(rng("dice").random() * 0) + scores.index(max(scores))]


def test_a_strategy_may_perform_effects_of_its_own(tmp_path: Path) -> None:
    result = explore(Taking(asks_a_model), Eats(Decision.branch([eat("a"), eat("c"), eat("b")])), traces=tmp_path)
    assert result.state.eaten == ["c"]
    assert [e.phase for e in result.trace.steps[0].effects] == ["branch"] * 3


@pytest.mark.parametrize("limit", [1, 3, 16])
def test_no_more_children_are_at_work_than_the_engine_allows(limit: int) -> None:
    at_work = most = 0

    async def work(name: str) -> str:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await anyio.sleep(0.001)
        at_work -= 1
        return name

    class Works(Eats):
        tools = {"dish": work}

    async def all_at_once(branch: Branch) -> Any:
        async def grow(number: int) -> None:
            await branch.grow(branch.root, candidates=[number, number + 1])

        async with anyio.create_task_group() as group:
            for number in range(0, 30, 2):
                group.start_soon(grow, number)
        return (await branch.grow(branch.root))[-1]

    module = Works(Decision.branch([eat(str(n)) for n in range(30)]))
    for strategy in (BestOfN(last_letter), Taking(all_at_once)):
        assert explore(strategy, module, max_children=limit).error is None
    assert most == limit


# how the parent ends


class Ending(Eats):
    def reduce(self, state: Menu, decision: Decision, observation: Observation) -> None:
        super().reduce(state, decision, observation)
        if state.eaten and state.eaten[-1] in list(StopReason):
            state.set_stop(state.eaten[-1], "that is it")


@pytest.mark.parametrize(
    "reason",
    [
        "success",
        "final",
        "agent_condition",
        "critic_stop",
        "stagnation",
        "context_overflow",
        "env_terminal",
        "max_steps",
    ],
)
@pytest.mark.parametrize("name", ["n", "n1", "beam", "best first", "tree"])
def test_the_run_ends_as_its_chosen_child_did(name: str, reason: str) -> None:
    result = explore(SEARCHES[name], Ending(Decision.branch([eat(reason), eat("A")])))
    assert (result.stop_reason, result.final_result, result.steps) == (reason, "that is it", 1)
    alone = Engine(Ending(eat(reason))).run("t")
    assert (result.status, result.state.stop_reason) == (alone.status, alone.state.stop_reason)


def test_a_final_decision_among_the_candidates_ends_the_run() -> None:
    module = Eats(Decision.branch([Decision.final("at once"), eat("a")]))
    result = explore(BestOfN(lambda state: float(not state.eaten)), module)
    assert (result.stop_reason, result.final_result, result.steps) == ("final", "at once", 1)


def test_stop_criteria_hold_in_children_by_what_the_child_has_done() -> None:
    module = Eats(eat("x"), Decision.branch([eat("a"), eat("b")]), *[eat("m")] * 9)
    result = explore(BestOfN(last_letter), module, stop=[MaxStepsCriteria(4)])
    assert [child.step_count for child in children(result.trace)[:2]] == [3, 3]
    assert result.stop_reason == "max_steps"
    assert result.state.eaten[:4] == ["x", "a", "m", "m"]

    still = StagnationCriteria(lambda state: state.eaten, 3)
    result = explore(BestOfN(last_letter), module, stop=[still])
    assert (result.stop_reason, result.status) == ("stagnation", "stopped")
    assert result.state.eaten == ["x", "a", "m", "m", "m"]


def test_a_criterion_with_a_budgets_name_ends_a_child_and_cuts_nothing() -> None:
    class Spends(Eats):
        async def decide(self, state: Menu) -> Decision:  # type: ignore[override]
            await perform(judge_model, ["a"])
            return super().decide(state)

    module = Spends(Decision.branch([eat("a"), eat("b")]), *[eat("m")] * 9)
    result = explore(BestOfN(lambda state: float(ord(state.eaten[0]))), module, stop=[MaxTokensCriteria(30)])
    assert choices(result.trace)[0]["cut"] is None
    assert (result.stop_reason, result.status) == ("budget_tokens", "stopped")
    assert result.state.eaten == ["b", "m", "m", "m"]


def test_steps_are_counted_as_the_state_says_and_never_exceed_the_limit() -> None:
    module = Eats(*[Decision.branch([eat("a"), eat("b")])] * 30)
    result = explore(BestOfN(last_letter, steps=3), module, budget=RuntimeBudget(max_steps=5))
    assert (result.stop_reason, result.steps, result.state.current_step, result.state.max_steps) == (
        "budget_steps",
        5,
        5,
        5,
    )
    for child in children(result.trace):
        state = child.final_state
        assert state["current_step"] <= state["max_steps"] == 5


# what is in the trace


def test_replaying_and_verifying_a_branched_run_explores_nothing_anew(tmp_path: Path) -> None:
    ran: Counter[str] = Counter()

    def counted(name: str) -> str:
        ran[name] += 1
        return name

    async def score(state: Menu) -> float:
        ran["score"] += 1
        return await judged(state)

    class Counts(Eats):
        tools = {"dish": counted}

    module = Counts(Decision.branch([eat("a"), Decision.branch([eat("b"), eat("c")])]))
    engine = Engine(module, branch=BeamSearch(2, 3, score), traces=tmp_path, budget=BUDGET)
    result = engine.run("t")
    before = dict(ran)
    sound(engine, result)
    assert engine.resume(result.trace).trace.data == result.trace.data
    assert [step.state["eaten"] for step in result.trace.steps] == [["c"]]
    assert anyio.run(verify, result.trace, module) == []
    assert dict(ran) == before
    files = sorted(path.name for path in tmp_path.rglob("*.trace.jsonl"))
    assert len(files) == 1 + len(children(result.trace))


def test_a_code_change_shows_in_the_children_it_concerns(tmp_path: Path) -> None:
    decisions = Decision.branch([eat("a"), eat("b")]), eat("m")
    engine = Engine(Eats(*decisions), branch=BestOfN(last_letter), traces=tmp_path)
    result = engine.run("t")

    class Changed(Eats):
        def decide(self, state: Menu) -> Decision:
            return Decision.final("sick") if "b" in state.eaten else super().decide(state)

    found = [bool(Engine(Changed(*decisions)).verify(trace)) for trace in (result.trace, *children(result.trace))]
    assert found == [False, False, True]


def test_observers_see_the_run_and_not_its_children() -> None:
    seen: list[Any] = []
    result = explore(BeamSearch(2, 2, value), Tree(), observers=[seen.append])
    assert [record.raw for record in seen] == [record.raw for record in result.trace.records]


def test_a_child_is_linked_to_where_it_branched_off() -> None:
    result = explore(BeamSearch(1, 2, value), Tree())
    for child in children(result.trace):
        link = child.header["parent"]
        parent = result.trace if link["run"] == result.run_id else result.trace.relative(link["run"])
        assert link["hash"] in [record.hash for record in parent.records]
        assert child.first_state == parent.state(link["step"])
        assert child.run_id == f"{link['run']}~{link['step']}.{link['candidate']}"


def test_children_of_children_of_children_have_ids_that_are_file_names(tmp_path: Path) -> None:
    module = Eats(*[Decision.branch([eat("a"), eat("b")])] * 40)
    result = explore(BeamSearch(1, 60, last_letter), module, traces=tmp_path, budget=RuntimeBudget(max_steps=60))
    assert result.state.eaten == ["b"] * 40
    assert max(len(path.name) for path in tmp_path.rglob("*.trace.jsonl")) < 180
    assert len(list(tmp_path.rglob("*.trace.jsonl"))) == 81


def test_a_branch_child_is_forked_and_not_resumed(tmp_path: Path) -> None:
    engine = Engine(Tree(), branch=BeamSearch(2, 3, value), traces=tmp_path, budget=BUDGET, seed=1)
    result = engine.run("go")
    child = next(c for c in children(result.trace) if c.header["parent"]["run"] != result.run_id)
    with pytest.raises(EngineUsageError, match="goes on with the run that branched"):
        engine.resume(child)

    def elsewhere(state: Place) -> None:
        state.salt = 5

    for at, edit in ((0, None), (1, elsewhere)):
        fork = engine.fork(child, at=at, edit=edit)
        assert fork.error is None
        assert fork.status == "completed"
        assert fork.state.way[: len(child.state(at)["way"])] == child.state(at)["way"]
        sound(engine, fork)
        again = engine.fork(child, at=at, edit=edit)
        assert again.state == fork.state


def test_children_work_on_tasks_with_ids_inputs_and_constraints() -> None:
    task = Task(id="dinner", objective="eat", constraints={"meat": False}, metadata={"table": 4})
    engine = Engine(Eats(Decision.branch([eat("a"), eat("b")])), branch=BestOfN(last_letter))
    result = engine.run(task)
    sound(engine, result)
    assert result.state.metadata == {"table": 4, "constraints": {"meat": False}}
    assert {child.header["task"]["id"] for child in children(result.trace)} == {"dinner"}
    assert all(child.run_id.startswith("dinner-") for child in children(result.trace))


def test_children_of_changed_code_fail_the_run_unless_that_is_to_be_ignored(tmp_path: Path) -> None:
    def engine(dish: str) -> Engine:
        module = Eats(Decision.branch([eat("a"), eat("b")]), eat(dish))
        return Engine(module, branch=BestOfN(last_letter), traces=tmp_path, max_children=1)

    result = engine("m").run("t")
    path, child = result.trace.path, children(result.trace)[1]
    assert path is not None
    assert child.path is not None
    opened = next(r.seq for r in result.trace.records if r.kind == "branch")
    decided = next(r.seq for r in child.records if r.kind == "decide" and r.step == 1)
    whole = [r.raw + b"\n" for r in child.records]
    path.write_bytes(b"".join(r.raw + b"\n" for r in result.trace.records[: opened + 1]))
    child.path.write_bytes(b"".join(whole[: decided + 1]))
    failed = engine("n").resume(path)
    assert failed.error is not None
    assert failed.error.type == "DivergenceError"
    assert "step 1, decide" in failed.error.message
    result = engine("n").resume(path, on_divergence="ignore")
    assert result.error is None
    assert choices(result.trace)[0]["scores"] == {"0": 109.0, "1": 109.0}
    assert [c.final_state["eaten"] for c in children(result.trace)] == [["a", "m"], ["b", "m"]]


def test_a_child_that_was_not_begun_or_lost_its_file_is_run(tmp_path: Path) -> None:
    engine = Engine(Eats(Decision.branch([eat("a"), eat("b"), eat("c")])), branch=BestOfN(last_letter), traces=tmp_path)
    result = engine.run("t")
    path = result.trace.path
    assert path is not None
    opened = next(r.seq for r in result.trace.records if r.kind == "branch")
    first, second, third = [child.path for child in children(result.trace)]
    assert first is not None
    assert second is not None
    assert third is not None
    kept = first.read_bytes()
    path.write_bytes(b"".join(r.raw + b"\n" for r in result.trace.records[: opened + 1]))
    second.unlink()
    third.write_bytes(third.read_bytes()[:20])
    result = engine.resume(path)
    sound(engine, result)
    assert result.state.eaten == ["c"]
    assert first.read_bytes() == kept


def test_a_run_is_resumed_under_another_strategy(tmp_path: Path) -> None:
    module = Eats(Decision.branch([eat("a"), eat("b"), eat("c")]))
    result = Engine(module, branch=BestOfN(last_letter), traces=tmp_path).run("t")
    path = result.trace.path
    assert path is not None
    opened = next(r.seq for r in result.trace.records if r.kind == "branch")
    records = [r.raw + b"\n" for r in result.trace.records]
    for strategy, eaten in (
        (SelectFirst(), ["a"]),
        (BeamSearch(1, 1, last_letter), ["c"]),
        (MonteCarloTreeSearch(last_letter, 2), ["b"]),
        (Taking(the_second), ["b"]),
    ):
        path.write_bytes(b"".join(records[: opened + 1]))
        engine = Engine(module, branch=strategy, traces=tmp_path)
        result = engine.resume(path)
        sound(engine, result)
        assert result.state.eaten == eaten


async def the_second(branch: Branch) -> Any:
    return (await branch.grow(branch.root, candidates=[1, 2]))[0]


class Library(StateSchema):
    shelves: dict[str, list[str]] = {}
    lent: list[str] = []
    read: int = 0


class Lends(AgentModule[Library]):
    tools = {"dish": dish}

    def init_state(self, task: str) -> Library:
        return Library(shelves={f"shelf {k}": [f"book {k}.{n}" for n in range(50)] for k in range(50)})

    def decide(self, state: Library) -> Decision:
        return Decision.branch([eat(str(n)) for n in range(8)]) if state.read < 2 else Decision.final("home")

    def reduce(self, state: Library, decision: Decision, observation: Observation) -> None:
        if observation.results:
            state.shelves[f"shelf {observation.results[0].output}"].pop()
            state.read += 1


def test_children_share_what_they_do_not_change_and_write_only_what_they_do(tmp_path: Path) -> None:
    seen: list[tuple[Node, list[Node]]] = []

    async def two_levels(branch: Branch) -> Any:
        first = await branch.grow(branch.root)
        second = await branch.grow(*first)
        seen.append((branch.root, [*first, *second]))
        return second[-1]

    result = explore(Taking(two_levels), Lends(), traces=tmp_path)
    assert result.error is None
    root, nodes = seen[0]
    assert len(nodes) == 72
    for node in nodes:
        changed = [name for name in root.state.shelves if node.state.shelves[name] is not root.state.shelves[name]]
        assert len(changed) <= node.depth
        assert node.state.lent is root.state.lent
    assert nodes[0].state.shelves["shelf 1"] is nodes[-1].state.shelves["shelf 1"]
    assert nodes[8].parent is nodes[0]
    for child in children(result.trace):
        assert [record.kind for record in child.records].count("snapshot") == 1
        assert "state" not in next(record for record in child.records if record.kind == "snapshot")


class DatedLibrary(Library):
    when: date | None = None


class DatedLends(AgentModule[DatedLibrary]):
    """The same, with a date, which is text in a patch."""

    tools = Lends.tools

    def init_state(self, task: str) -> DatedLibrary:
        return DatedLibrary(shelves=Lends().init_state(task).to_dict()["shelves"])

    def decide(self, state: DatedLibrary) -> Decision:
        return Lends().decide(state)

    def reduce(self, state: DatedLibrary, decision: Decision, observation: Observation) -> None:
        Lends().reduce(state, decision, observation)
        if observation.results:
            state.when = date(2026, 1, 1 + int(observation.results[0].output))


@pytest.mark.parametrize("dated", [False, True], ids=["shared", "read"])
def test_children_that_had_ended_are_taken_up_with_what_they_share(dated: bool, tmp_path: Path) -> None:
    seen: list[tuple[Node, list[Node]]] = []

    async def two_levels(branch: Branch) -> Any:
        first = await branch.grow(branch.root)
        second = await branch.grow(*first[:2])
        seen.append((branch.root, [*first, *second]))
        return second[-1]

    module: AgentModule[Any] = DatedLends() if dated else Lends()
    engine = Engine(module, branch=Taking(two_levels), traces=tmp_path)
    result = engine.run("t")
    path = result.trace.path
    assert path is not None
    chosen = next(r.seq for r in result.trace.records if r.kind == "branch" and "chosen" in r)
    path.write_bytes(b"".join(r.raw + b"\n" for r in result.trace.records[:chosen]))
    written = {child.path: child.data for child in children(result.trace)}
    again = engine.resume(path)
    sound(engine, again)
    assert again.state == result.state
    assert {child.path: child.data for child in children(again.trace)} == written
    (_, before), (root, after) = seen
    assert [node.state for node in before] == [node.state for node in after]
    if not dated:
        for node in after:
            kept = [name for name in root.state.shelves if node.state.shelves[name] is root.state.shelves[name]]
            assert len(kept) >= 50 - node.depth
