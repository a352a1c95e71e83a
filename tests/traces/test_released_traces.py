"""Every version reads, verifies and resumes the traces that the released versions have left."""

from pathlib import Path
from typing import Any

import pytest
from released_runs import ANSWER, ENDS, MODULES, ROOM

from refold import Engine, Trace, __version__, replay

RELEASES = sorted(path for path in ROOM.iterdir() if path.name[0].isdigit())


@pytest.fixture(
    params=[(release, name) for release in RELEASES for name in MODULES], ids=lambda p: f"{p[0].name}-{p[1]}"
)
def released(request: pytest.FixtureRequest) -> tuple[Path, str]:
    release, name = request.param
    return release, name


def test_this_version_has_left_its_traces() -> None:
    assert ROOM / __version__ in RELEASES, "run: python tests/traces/make_golden.py"


def test_a_released_trace_is_read_and_replayed(released: tuple[Path, str]) -> None:
    release, name = released
    trace = Trace.load(release / f"{name}-completed.trace.jsonl")
    trace.check()
    assert (trace.status, trace.header["format"]) == ("completed", 1)
    assert trace.header["versions"]["refold"] == release.name
    assert trace.end["final_result"] == ENDS[name]
    assert [step.index for step in replay(trace)] == list(range(trace.step_count))
    assert trace.final_state["final_result"] == ENDS[name]


def test_a_released_trace_is_verified(released: tuple[Path, str]) -> None:
    release, name = released
    for state in ("waiting", "completed"):
        engine: Engine[Any] = Engine(MODULES[name]())
        assert engine.verify(Trace.load(release / f"{name}-{state}.trace.jsonl")) == []


def test_a_released_run_is_resumed_with_its_answer(released: tuple[Path, str], tmp_path: Path) -> None:
    release, name = released
    waiting = tmp_path / f"{name}.trace.jsonl"
    waiting.write_bytes((release / f"{name}-waiting.trace.jsonl").read_bytes())
    engine: Engine[Any] = Engine(MODULES[name]())
    result = engine.resume(waiting, ANSWER)
    assert (result.status, result.final_result) == ("completed", ENDS[name])
    assert engine.verify(waiting) == []
