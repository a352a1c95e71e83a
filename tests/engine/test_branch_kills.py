"""A run is killed while it explores, at every record and at random moments, and resumed to the same state."""

import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import roaming
from dying import written
from test_wait_kills import Nursery
from trees import children

from refold import Trace
from refold.engine.run.resume import used_so_far
from refold.traces import TraceWriter

ROUNDS = int(os.environ.get("REFOLD_KILLS", "16"))
CUTS = int(os.environ.get("REFOLD_CUTS", "24"))


def world(folder: Path) -> list[str]:
    path = folder / "world.txt"
    return path.read_text().splitlines() if path.exists() else []


def told(result: Any) -> dict[str, Any]:
    """What must be as undisturbed; not what was used, as nobody knows that of a call that was cut off."""
    assert result.error is None
    return {
        "state": {**result.state.to_dict(), "folder": ""},
        "children": sorted(child.run_id.partition("~")[2] for child in children(result.trace)),
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    result = roaming.engine(folder).run(roaming.task(folder))
    return {**told(result), "world": once(folder)}


def once(folder: Path) -> Counter[str]:
    """How often each call was made that may be made once; each of them has a key of its own."""
    calls = Counter(line for line in world(folder) if line.startswith("once"))
    assert set(calls.values()) <= {1}
    return Counter(line.split()[0] for line in calls)


def assert_sound(folder: Path, result: Any, undisturbed: dict[str, Any]) -> None:
    """The same as undisturbed, every effect that ended run once, all traces whole, the family's usage adding up."""
    assert {**told(result), "world": once(folder)} == undisturbed
    family = (result.trace, *children(result.trace))
    for trace in family:
        trace.check()
        assert_once(trace)
        adds_up(trace)

    async def verified() -> None:
        engine = roaming.engine(folder)
        for trace in family:
            assert await engine.averify(trace) == []

    anyio.run(verified)
    again = roaming.engine(folder).resume(result.trace.path)
    assert again.trace.data == result.trace.data, "recovering twice gives what recovering once gives"


def assert_once(trace: Trace) -> None:
    """No outcome is written twice for one call, and nothing comes after an end that was one."""
    intents = {record.seq: record for record in trace.records if record.kind == "intent"}
    ended = Counter(
        (record.step, intent["phase"], intent["digest"], intent.get("n", 0))
        for record in trace.records
        if record.kind == "outcome" and not record.get("cancelled")
        for intent in [intents[record["intent"]]]
    )
    assert set(ended.values()) <= {1}, "an outcome is used once"
    over = ("completed", "stopped", "failed")
    ends = [record for record in trace.records if record.kind == "end" and record["status"] in over]
    assert len(ends) == 1
    assert ends[0].seq == len(trace.records) - 1


def adds_up(trace: Trace) -> None:
    """What a run has used is what its own calls and its children have."""
    own: Counter[str] = Counter()
    for record in trace.records:
        if record.kind == "outcome":
            for what, count in (record.get("usage") or {}).items():
                own[what] += count or 0
    for child in children(trace, deep=False):
        for what in ("tokens_in", "tokens_out", "cost"):
            own[what] += getattr(used_so_far(child), what)
    assert {what: trace.end["usage"][what] for what in ("tokens_in", "tokens_out", "cost")} == {
        what: own[what] for what in ("tokens_in", "tokens_out", "cost")
    }


# at every record


class Moments:
    """The sizes of all files as each record was written, in the order in which that happened."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.sizes: list[tuple[Path, int, int]] = []
        """For each record its file, how long that was with it, and how long the world was then."""
        append = TraceWriter.append_line

        def watched(writer: TraceWriter, *args: Any, **kwargs: Any) -> Any:
            given = append(writer, *args, **kwargs)
            assert writer.path is not None
            told = folder / "world.txt"
            self.sizes.append((writer.path, writer.path.stat().st_size, told.stat().st_size if told.exists() else 0))
            return given

        with monkeypatch.context() as patch:
            patch.setattr(TraceWriter, "append_line", watched)
            roaming.engine(folder).run(roaming.task(folder))
        self.kept = {path: path.read_bytes() for path in {path for path, _, _ in self.sizes} | {folder / "world.txt"}}

    def restore(self, moment: int, torn: int) -> None:
        """Puts everything back as it was after a record, with so many bytes of the next one."""
        shutil.rmtree(self.folder / "runs")
        sizes = {path: size for path, size, _ in self.sizes[: moment + 1]}
        if torn and moment + 1 < len(self.sizes):
            path, _, _ = self.sizes[moment + 1]
            sizes[path] = sizes.get(path, 0) + torn
        for path, size in sizes.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.kept[path][:size])
        told = self.folder / "world.txt"
        told.write_bytes(self.kept[told][: self.sizes[moment][2]])


def forget_what_was_opened(path: Path) -> None:
    """Cuts off the last records of the run, which may have opened children that are there."""
    lines = path.read_bytes().splitlines(keepends=True)
    while lines[-1].startswith((b'{"kind":"branch"', b'{"kind":"decide"')):
        lines.pop()
    path.write_bytes(b"".join(lines))


@pytest.mark.timeout(1800)
def test_every_record_can_be_resumed_from(
    tmp_path: Path, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = Moments(tmp_path, monkeypatch)
    chance = random.Random(0)
    everywhere = range(len(moments.sizes))
    left_alone = 0
    for moment in sorted(chance.sample(everywhere, min(CUTS, len(everywhere)))):
        moments.restore(moment, chance.choice([0, 0, 1, 30]))
        if chance.random() < 0.4:
            forget_what_was_opened(roaming.trace_of(tmp_path))
        ended = {
            child.run_id: child.data
            for child in children(Trace.load(roaming.trace_of(tmp_path)))
            if child.size and child.ending.record is not None
        }
        result = roaming.settle(tmp_path, chance)
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


class Roamers(Nursery):
    def __init__(self) -> None:
        command = [sys.executable, roaming.__file__]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.codes: dict[int, int] = {}


@pytest.fixture(scope="module")
def roamers() -> Iterator[Roamers]:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    roamers = Roamers()
    yield roamers
    roamers.process.stdin.close()  # type: ignore[union-attr]
    roamers.process.wait(30)
    roamers.process.stdout.close()  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many bytes a run and its children write that nobody kills."""
    folder = tmp_path_factory.mktemp("whole")
    roaming.engine(folder).run(roaming.task(folder))
    return written(folder)


def test_kills_come_while_there_is_something_to_kill(tmp_path: Path, roamers: Roamers, whole: int) -> None:
    codes = []
    for part in range(20):  # a busy machine may let a run end before it is killed
        folder = tmp_path / str(part)
        folder.mkdir()
        codes.append(roamers.kill_after(whole * (part % 5 + 1) / 8, "start", folder, 1))
        if codes.count(-signal.SIGKILL) == 2:
            return
    raise AssertionError(codes)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_run_killed_while_it_explores_is_resumed_to_the_same_state(
    seed: int, tmp_path: Path, roamers: Roamers, undisturbed: dict[str, Any], whole: int
) -> None:
    chance = random.Random(seed)
    roamers.kill_after(whole * chance.uniform(0, 0.8), "start", tmp_path, seed, chance.uniform(0, 0.003))
    for _ in range(chance.randint(0, 3)):
        if list((tmp_path / "runs").glob("*.trace.jsonl")):
            more, each = whole * chance.uniform(0, 0.4), chance.randrange(1 << 30)
            roamers.kill_after(more, "resume", tmp_path, each, chance.uniform(0, 0.003))
    paths = list((tmp_path / "runs").glob("*.trace.jsonl"))
    if not paths or not Trace.load(paths[0]).size:
        return  # killed before the header: there was no run yet
    assert_sound(tmp_path, roaming.settle(tmp_path, chance), undisturbed)
