"""A timeline's tracks hold spans that lie behind or inside each other; child runs are processes with arrows."""

import io
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import orjson

from refold.traces import Trace
from refold.traces.export import write_perfetto


def events_of(*traces: Trace) -> list[dict[str, Any]]:
    out = io.BytesIO()
    write_perfetto(traces, out)
    document = orjson.loads(out.getvalue())
    assert document["displayTimeUnit"] == "ms"
    events: list[dict[str, Any]] = document["traceEvents"]
    return events


def spans(events: list[dict[str, Any]], category: str) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X" and event["cat"] == category]


def test_spans_of_a_track_never_overlap(family_trace: Trace) -> None:
    tracks = defaultdict(list)
    for event in events_of(family_trace):
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert len(tracks) > 4
    for found in tracks.values():
        open_ends: list[int] = []
        for start, end in found:  # in the order of the file, outer ones first
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


def test_parallel_calls_have_tracks_of_their_own(family_trace: Trace) -> None:
    events = events_of(family_trace)
    first = [e for e in spans(events, "effect") if e["pid"] == 1 and e["name"] == "think"]
    assert len({event["tid"] for event in first}) == 2
    inner = [e for e in spans(events, "effect") if e["pid"] == 1 and e["name"] == "inner"]
    assert len(inner) == 4
    assert [event["args"]["seconds"] > 0 for event in inner] == [True] * 4


def test_child_runs_are_processes_that_their_calls_point_to(family_trace: Trace) -> None:
    events = events_of(family_trace)
    runs = spans(events, "run")
    assert [run["pid"] for run in runs] == [1, 2]
    start, end = (next(e for e in events if e["ph"] == phase) for phase in "sf")
    assert (start["pid"], end["pid"], start["id"]) == (1, 2, end["id"])
    call = next(e for e in spans(events, "effect") if e["args"]["id"] == start["args"]["from"])
    assert call["name"] == "refold.child"
    for arrow, run in ((start, runs[0]), (end, runs[1])):
        assert run["ts"] <= arrow["ts"] <= run["ts"] + run["dur"]


def test_waits_errors_and_counters_show(family_trace: Trace) -> None:
    events = events_of(family_trace)
    (wait,) = spans(events, "wait")
    assert wait["args"]["prompt"] == "SECRET text"
    (failed,) = [e for e in spans(events, "effect") if e["name"] == "fail"]
    assert failed["args"]["error"] == "ValueError: SECRET SECRET text"
    counted = [e["args"]["tokens"] for e in events if e["ph"] == "C" and e["name"] == "tokens"]
    assert counted == [10, 20, 30, 40]


def test_several_runs_and_unfinished_ones_share_a_timeline(write_run: Callable[..., Trace]) -> None:
    whole = write_run(steps=2, snapshot=None, end=False, run_id="r2")
    cut = Trace.from_bytes(b"".join(whole.data.splitlines(keepends=True)[:-1]))
    events = events_of(write_run(steps=1), cut)
    assert [run["args"].get("unfinished", False) for run in spans(events, "run")] == [False, True]
    assert [step["args"].get("unfinished", False) for step in spans(events, "step")] == [False, False, True]
