"""A run is killed while it explores, at every record and at random moments, and resumed to the same state."""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from crash_lab import exploring_run
from crash_lab.fork_server import ForkServer
from crash_lab.invariants import assert_one_end, assert_outcomes_used_once, assert_usage_adds_up
from crash_lab.moments import Moments, cut_off_last
from crash_lab.world import calls_made_once, trace_of, written
from toys.tree import children

from refold import Trace

ROUNDS = int(os.environ.get("REFOLD_KILLS", "5"))
CUTS = int(os.environ.get("REFOLD_CUTS", "6"))


def outcome(result: Any) -> dict[str, Any]:
    """What must be as undisturbed; not what was used, as nobody knows that of a call that was cut off."""
    assert result.error is None
    return {
        "state": {**result.state.to_dict(), "folder": ""},
        "children": sorted(child.run_id.partition("~")[2] for child in children(result.trace)),
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    result = exploring_run.engine(folder).run(exploring_run.task(folder))
    return {**outcome(result), "world": calls_made_once(folder)}


def assert_sound(folder: Path, result: Any, undisturbed: dict[str, Any]) -> None:
    """The same as undisturbed, every effect that ended run once, all traces whole, the family's usage adding up."""
    assert {**outcome(result), "world": calls_made_once(folder)} == undisturbed
    family = (result.trace, *children(result.trace))
    for trace in family:
        trace.check()
        assert_outcomes_used_once(trace)
        assert_one_end(trace)
        assert_usage_adds_up(trace, children(trace, deep=False))

    async def verified() -> None:
        engine = exploring_run.engine(folder)
        for trace in family:
            assert await engine.averify(trace) == []

    anyio.run(verified)
    again = exploring_run.engine(folder).resume(result.trace.path)
    assert again.trace.data == result.trace.data, "recovering twice gives what recovering once gives"


# at every record


@pytest.mark.timeout(1800)
def test_every_record_can_be_resumed_from(
    tmp_path: Path, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = Moments(tmp_path, monkeypatch, lambda: exploring_run.engine(tmp_path).run(exploring_run.task(tmp_path)))
    chance = random.Random(0)
    everywhere = range(len(moments.sizes))
    left_alone = 0
    for moment in sorted(chance.sample(everywhere, min(CUTS, len(everywhere)))):
        moments.restore(moment, chance.choice([0, 0, 1, 30]))
        if chance.random() < 0.4:
            cut_off_last(tmp_path, "branch", "decide")
        ended = {
            child.run_id: child.data
            for child in children(Trace.load(trace_of(tmp_path)))
            if child.size and child.ending.record is not None
        }
        result = exploring_run.resume(tmp_path, chance)
        try:
            assert_sound(tmp_path, result, undisturbed)
            for run_id, data in ended.items():
                left_alone += 1
                assert result.trace.relative(run_id).data == data, "a child that ended is left alone"
        except AssertionError as error:
            error.add_note(f"cut after record {moment} of {len(everywhere)}")
            raise
    assert left_alone, "some of the moments come after a child has ended"


# at random moments


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(exploring_run) as server:
        yield server


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many bytes a run and its children write that nobody kills."""
    folder = tmp_path_factory.mktemp("whole")
    exploring_run.engine(folder).run(exploring_run.task(folder))
    return written(folder)


def test_kills_come_while_there_is_something_to_kill(tmp_path: Path, server: ForkServer, whole: int) -> None:
    server.assert_kills_hit(tmp_path, "start", whole)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_run_killed_while_it_explores_is_resumed_to_the_same_state(
    seed: int, tmp_path: Path, server: ForkServer, undisturbed: dict[str, Any], whole: int
) -> None:
    chance = random.Random(seed)
    if not server.kill_some(tmp_path, chance, whole, seed=seed):
        return  # killed before the header: there was no run yet
    assert_sound(tmp_path, exploring_run.resume(tmp_path, chance), undisturbed)
