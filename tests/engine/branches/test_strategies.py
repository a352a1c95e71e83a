"""What strategies choose: against the same search without an engine, whatever ends first, on either loop."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys.tree import BUDGET, Place, Taking, Tree, Way, children, choices, delays, ended, explore, judge, value, worth

from refold import BeamSearch, BestFirst, BestOfN, Decision, Engine, MonteCarloTreeSearch, SelectBest, SelectFirst, Task
from refold.engine import Branch, Node
from refold.errors import UsageError

Size = tuple[int, int, int]
"""Salt, depth and width of a tree."""


def after(ways: list[Way], size: Size) -> list[Way]:
    salt, depth, width = size
    return [(*way, n) for way in ways if not ended(way, salt, depth) for n in range(width)]


def by_beam(width: int, depth: int, size: Size) -> Way:
    salt, deepest, _ = size
    beam: list[Way] = [()]
    for _ in range(depth):
        found = [way for way in beam if ended(way, salt, deepest)] + after(beam, size)
        beam = sorted(found, key=lambda way: -worth(way, salt))[:width]
    return beam[0]


def by_best_first(expansions: int, size: Size) -> Way:
    salt, deepest, _ = size
    frontier: list[tuple[float, int, Way]] = []
    way: Way = ()
    made = 0
    for _ in range(expansions):
        for child in after([way], size):
            made += 1
            heappush(frontier, (-worth(child, salt), made, child))
        if ended(frontier[0][2], salt, deepest):
            return frontier[0][2]
        way = heappop(frontier)[2]
    return way


def ends(size: Size) -> list[Way]:
    """All ways to an end."""
    salt, deepest, width = size
    ways = [way for length in range(1, deepest + 1) for way in product(range(width), repeat=length)]
    return [
        way
        for way in ways
        if ended(way, salt, deepest) and not any(ended(way[:k], salt, deepest) for k in range(1, len(way)))
    ]


sizes = st.tuples(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 3))
STRATEGIES: dict[str, tuple[Any, Callable[[Size], Way]]] = {
    "beam of one": (BeamSearch(1, 5, value), lambda size: by_beam(1, 5, size)),
    "beam": (BeamSearch(2, 5, judge), lambda size: by_beam(2, 5, size)),
    "wide beam": (BeamSearch(30, 5, value), lambda size: by_beam(30, 5, size)),
    "best first": (BestFirst(value, 50), lambda size: by_best_first(50, size)),
    "best first, judged": (BestFirst(judge, 50), lambda size: by_best_first(50, size)),
}


@pytest.mark.parametrize("name", STRATEGIES)
@settings(max_examples=6)
@given(size=sizes, seed=st.integers(0, 99), max_children=st.integers(1, 5))
def test_a_search_finds_what_it_finds_without_an_engine(name: str, size: Size, seed: int, max_children: int) -> None:
    strategy, expected = STRATEGIES[name]
    delays.seed(seed)
    engine = Engine(Tree(), branch=strategy, budget=BUDGET, max_children=max_children)
    task = Task(objective="go", inputs={"salt": size[0], "depth": size[1], "width": size[2]})
    result = engine.run(task)
    assert tuple(result.state.way) == expected(size)
    assert (result.stop_reason, result.steps) == ("final", 1)


@settings(max_examples=15)
@given(size=sizes, seed=st.integers(0, 99))
def test_a_tree_search_with_rollouts_enough_finds_the_best_end(size: Size, seed: int) -> None:
    delays.seed(seed)
    inputs = {"salt": size[0], "depth": size[1], "width": size[2]}
    result = explore(MonteCarloTreeSearch(value, rollouts=80), inputs=inputs, seed=seed)
    assert worth(tuple(result.state.way), size[0]) == max(worth(way, size[0]) for way in ends(size))


def told(result: Any) -> Any:
    """All that must be the same whatever the children's order was."""
    records = [(r.kind, r.step, r.get("patch"), r.get("decision"), r.get("opened")) for r in result.trace.records]
    plain = [str(record).replace(result.run_id, "RUN") for record in records]
    chosen = [{**choice, "at": 0, "seq": 0, "hash": ""} for choice in choices(result.trace)]
    runs = sorted(child.run_id.replace(result.run_id, "RUN") for child in children(result.trace))
    return result.state.to_dict(), plain, str(chosen).replace(result.run_id, "RUN"), runs


@pytest.mark.parametrize(
    "strategy",
    [
        BestOfN(judge, steps=2),
        BestOfN(value),
        BeamSearch(2, 3, judge),
        BestFirst(judge),
        MonteCarloTreeSearch(judge, 9),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
@settings(max_examples=4)
@given(seed=st.integers(0, 5), chance=st.integers(1, 99), max_children=st.integers(1, 16))
def test_one_seed_one_outcome(strategy: Any, seed: int, chance: int, max_children: int) -> None:
    def run(chance: int, max_children: int) -> Any:
        delays.seed(chance)
        engine = Engine(Tree(), branch=strategy, budget=BUDGET, seed=seed, max_children=max_children)
        return told(engine.run("go"))

    assert run(chance, max_children) == run(0, 1)


def test_the_first_is_selected_and_nothing_is_run() -> None:
    result = explore(SelectFirst())
    assert result.state.way == [0, 0, 0]
    assert children(result.trace) == []
    assert [choice["chosen"] for choice in choices(result.trace)] == [{"candidate": 0}] * 3


def test_the_best_rated_is_selected_and_all_scores_are_told() -> None:
    def middle(state: Place, decision: Decision) -> float:
        return -abs(float(decision.actions[0].args["n"]) - 1)

    result = explore(SelectBest(middle))
    assert result.state.way == [1, 1, 1]
    assert choices(result.trace)[0]["scores"] == {"0": -1.0, "1": 0.0, "2": -1.0}
    assert choices(result.trace)[0]["strategy"]["name"] == "SelectBest"
    assert [len(step.decided["candidates"]) for step in result.trace.steps[:3] if step.decided] == [3, 3, 3]


def test_the_first_of_equals_is_taken_by_each() -> None:
    def same(*_: Any) -> float:
        return 0.0

    assert explore(SelectBest(same)).state.way == [0, 0, 0]
    for strategy in (BestOfN(same), BestOfN(same, steps=1), BeamSearch(3, 3, same), BestFirst(same)):
        assert explore(strategy).state.way == [0, 0, 0], strategy


def test_best_of_n_adopts_the_state_after_its_steps_and_goes_on_from_there() -> None:
    result = explore(BestOfN(value, steps=1))
    assert len(result.state.way) == 3
    for step in result.trace.steps[:3]:
        salt, way = step.before["salt"], tuple(step.before["way"])
        expected = max(range(3), key=lambda n: worth((*way, n), salt))
        assert step.state["way"] == [*way, expected]
    assert [child.step_count for child in children(result.trace)] == [1] * 9
    assert {child.stop_reason for child in children(result.trace)} == {"max_steps"}


def test_best_first_takes_the_best_that_was_not_grown_where_its_expansions_end() -> None:
    result = explore(BestFirst(value, max_expansions=1))
    assert (result.steps, len(result.state.way)) == (3, 3)
    assert len(children(result.trace)) == 9


def test_no_rollout_goes_to_the_same_end_twice_and_the_search_is_over_when_all_were_reached() -> None:
    asked: list[Way] = []

    def counted(state: Place) -> float:
        asked.append(tuple(state.way))
        return value(state)

    result = explore(MonteCarloTreeSearch(counted, 10_000, exploration=0.0))
    assert sorted(asked) == sorted(ends((0, 3, 3)))
    assert len(children(result.trace)) == 39


def test_a_tree_search_leaves_what_scored_badly_alone() -> None:
    def likes_one(state: Place) -> float:
        return float(state.way[0] == 1)

    result = explore(MonteCarloTreeSearch(likes_one, 20, exploration=0.1), inputs={"depth": 4, "width": 3})
    paths = [child.header["parent"]["path"] for child in children(result.trace)]
    below = [sum(path.startswith(f"/0.{n}/") for path in paths) for n in range(3)]
    assert below[1] > 3 * max(below[0], below[2])
    assert result.state.way[0] == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: BestOfN(value, steps=0),
        lambda: BestOfN(value, steps=True),
        lambda: BeamSearch(0, 1, value),
        lambda: BeamSearch(1, 0, value),
        lambda: BestFirst(value, 0),
        lambda: BestFirst(value, 1.5),  # type: ignore[arg-type]
        lambda: MonteCarloTreeSearch(value, rollouts=0),
        lambda: MonteCarloTreeSearch(value, max_depth=0),
        lambda: MonteCarloTreeSearch(value, exploration=-1.0),
        lambda: MonteCarloTreeSearch(value, exploration=float("nan")),
        lambda: BestOfN("best"),  # type: ignore[arg-type]
        lambda: SelectBest(None),  # type: ignore[arg-type]
    ],
)
def test_settings_that_make_no_sense_are_refused_at_once(make: Callable[[], Any]) -> None:
    with pytest.raises(UsageError):
        make()


async def least(branch: Branch) -> Node:
    """A strategy of one's own: grows all two levels deep, and takes the worst."""
    first = await branch.grow(branch.root)
    grown = await branch.grow(*first)
    scores = await branch.rate(*grown, score=judge)
    return grown[scores.index(min(scores))]


def test_a_strategy_of_ones_own() -> None:
    size = (0, 3, 3)
    result = explore(Taking(least))
    way = min(after(after([()], size), size), key=lambda way: worth(way, 0))
    assert result.trace.steps[0].state["way"] == list(way)
    assert choices(result.trace)[0]["strategy"] == {"name": "Taking"}
    assert choices(result.trace)[0]["chosen"]["place"] == ".".join(map(str, way))
