"""A run with runs inside it is killed, at records and at random moments, and resumed to the same states."""

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from crash_lab import nested_run
from crash_lab.fork_server import ForkServer
from crash_lab.invariants import assert_outcomes_used_once, assert_usage_adds_up
from crash_lab.moments import Moments, cut_off_last
from crash_lab.world import calls_made_once, written

from refold import Engine, Trace

ROUNDS = int(os.environ.get("REFOLD_KILLS", "5"))
CUTS = int(os.environ.get("REFOLD_CUTS", "6"))


def final_states(result: Any) -> dict[str, Any]:
    """What must be as undisturbed: the states of all runs of the family."""
    assert result.error is None, result.error
    family = nested_run.family_of(result.trace)
    return {each.run_id.partition("~")[2]: {**each.final_state, "folder": ""} for each in family}


def without_folder(states: dict[str, Any]) -> list[str]:
    """The states in an order of their own.

    What was rolled in a tool depends on the tool's arguments, and so on the folder; so do the labels of children.
    """
    texts = (str({**state, "besides": len(state["besides"])}) for state in states.values())
    return sorted(re.sub(r"rolled 0\.\d+", "rolled", text) for text in texts)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    result = nested_run.engine(folder).run(nested_run.task(folder))
    assert len(nested_run.family_of(result.trace)) == 9
    return {"states": without_folder(final_states(result)), "world": calls_made_once(folder)}


def assert_sound(folder: Path, result: Any, undisturbed: dict[str, Any]) -> None:
    """The same as undisturbed, every effect that ended run once, all traces whole, the family's usage adding up."""
    assert without_folder(final_states(result)) == undisturbed["states"]
    assert calls_made_once(folder) == undisturbed["world"]
    family = nested_run.family_of(result.trace)
    for trace in family:
        trace.check()
        assert trace.status == "completed"
        assert_outcomes_used_once(trace)
        assert_usage_adds_up(trace, nested_run.children_of(trace))

    async def verified() -> None:
        assert await nested_run.engine(folder).averify(result.trace) == []
        for trace in family[1:]:
            assert await Engine(nested_run.Errand()).averify(trace) == []

    anyio.run(verified)
    again = nested_run.engine(folder).resume(result.trace.path)
    assert again.trace.data == result.trace.data, "recovering twice gives what recovering once gives"


# at every record


@pytest.mark.timeout(1800)
def test_every_record_can_be_resumed_from(
    tmp_path: Path, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = Moments(tmp_path, monkeypatch, lambda: nested_run.engine(tmp_path).run(nested_run.task(tmp_path)))
    chance = random.Random(0)
    everywhere = range(len(moments.sizes))
    left_alone = 0
    for moment in sorted(chance.sample(everywhere, min(CUTS, len(everywhere)))):
        moments.restore(moment, chance.choice([0, 0, 1, 30]))
        forgot = chance.random() < 0.3
        if forgot:
            cut_off_last(tmp_path, "intent", "decide")
        ended = {
            path: path.read_bytes()
            for path in (tmp_path / "runs").glob("*.branches/*.trace.jsonl")
            if path.stat().st_size and Trace.load(path).size and Trace.load(path).status == "completed"
        }
        try:
            assert_sound(tmp_path, nested_run.resume(tmp_path, chance), undisturbed)
            for path, data in ended.items():
                left_alone += 1
                assert path.read_bytes() == data, "a child that ended is left alone"
        except BaseException as error:
            error.add_note(f"cut after record {moment} of {len(everywhere)}, forgot: {forgot}")
            raise
    assert left_alone, "some of the moments come after a child has ended"


# at random moments


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(nested_run) as server:
        yield server


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many bytes a run and its children write that nobody kills."""
    folder = tmp_path_factory.mktemp("whole")
    nested_run.engine(folder).run(nested_run.task(folder))
    return written(folder)


def test_kills_come_while_there_is_something_to_kill(tmp_path: Path, server: ForkServer, whole: int) -> None:
    server.assert_kills_hit(tmp_path, "start", whole)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_run_killed_with_runs_inside_it_is_resumed_to_the_same_states(
    seed: int, tmp_path: Path, server: ForkServer, undisturbed: dict[str, Any], whole: int
) -> None:
    chance = random.Random(seed)
    if not server.kill_some(tmp_path, chance, whole, seed=seed):
        return  # killed before the header: there was no run yet
    assert_sound(tmp_path, nested_run.resume(tmp_path, chance), undisturbed)
