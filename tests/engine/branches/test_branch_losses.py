"""Candidates that fail are lost; where all are, the run fails, and tries again when it is resumed."""

from pathlib import Path
from typing import Any

import pytest
from toys.menu import SEARCHES, Eats, Fragile, Menu, eat, everywhere, last_letter
from toys.tree import assert_family_holds, children, choices, explore

from refold import (
    BestOfN,
    Decision,
    Engine,
    Observation,
)


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
    assert result.error.type == "RunAbortedError"
    assert "candidate 0: ValueError: bad z" in result.error.message
    assert "candidate 1: ValueError: bad y" in result.error.message


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
    assert_family_holds(engine, result)
