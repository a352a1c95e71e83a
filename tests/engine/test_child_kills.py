"""A run with runs inside it is killed, at records and at random moments, and resumed to the same states."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import handing
import pytest
from dying import written
from test_wait_kills import Nursery

from refold import Engine, Trace
from refold.engine.run.resume import used_so_far
from refold.traces import TraceWriter

ROUNDS = int(os.environ.get("REFOLD_KILLS", "12"))
CUTS = int(os.environ.get("REFOLD_CUTS", "20"))


def world(folder: Path) -> list[str]:
    path = folder / "world.txt"
    return path.read_text().splitlines() if path.exists() else []


def once(folder: Path) -> Counter[str]:
    """How often each call was made that may be made once; each of them has a key of its own."""
    calls = Counter(line for line in world(folder) if line.startswith("once"))
    assert set(calls.values()) <= {1}
    return Counter(line.split()[0] for line in calls)


def told(result: Any) -> dict[str, Any]:
    """What must be as undisturbed: the states of all runs of the family."""
    assert result.error is None, result.error
    family = handing.family_of(result.trace)
    return {each.run_id.partition("~")[2]: {**each.final_state, "folder": ""} for each in family}


def without_folder(told: dict[str, Any]) -> list[str]:
    """The states in an order of their own.

    What was rolled in a tool depends on the tool's arguments, and so on the folder; so do the labels of children.
    """
    texts = (str({**state, "besides": len(state["besides"])}) for state in told.values())
    return sorted(re.sub(r"rolled 0\.\d+", "rolled", text) for text in texts)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    result = handing.engine(folder).run(handing.task(folder))
    assert len(handing.family_of(result.trace)) == 9
    return {"states": without_folder(told(result)), "world": once(folder)}


def assert_sound(folder: Path, result: Any, undisturbed: dict[str, Any]) -> None:
    """The same as undisturbed, every effect that ended run once, all traces whole, the family's usage adding up."""
    assert without_folder(told(result)) == undisturbed["states"]
    assert once(folder) == undisturbed["world"]
    family = handing.family_of(result.trace)
    for trace in family:
        trace.check()
        assert trace.status == "completed"
        assert_once(trace)
        adds_up(trace)

    async def verified() -> None:
        assert await handing.engine(folder).averify(result.trace) == []
        for trace in family[1:]:
            assert await Engine(handing.Errand()).averify(trace) == []

    anyio.run(verified)
    again = handing.engine(folder).resume(result.trace.path)
    assert again.trace.data == result.trace.data, "recovering twice gives what recovering once gives"


def assert_once(trace: Trace) -> None:
    """No outcome is written twice for one call."""
    intents = {record.seq: record for record in trace.records if record.kind == "intent"}
    ended = Counter(
        (record.step, intent["phase"], intent["digest"], intent.get("n", 0))
        for record in trace.records
        if record.kind == "outcome" and not record.get("cancelled")
        for intent in [intents[record["intent"]]]
    )
    assert set(ended.values()) <= {1}


def adds_up(trace: Trace) -> None:
    """What a run has used is what its own calls and its children have."""
    own: Counter[str] = Counter()
    for record in trace.records:
        if record.kind == "outcome":
            for what, count in (record.get("usage") or {}).items():
                own[what] += count or 0
    for child in handing.children_of(trace):
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
        append = TraceWriter.append_line

        def watched(writer: TraceWriter, *args: Any, **kwargs: Any) -> Any:
            given = append(writer, *args, **kwargs)
            assert writer.path is not None
            told = folder / "world.txt"
            self.sizes.append((writer.path, writer.path.stat().st_size, told.stat().st_size if told.exists() else 0))
            return given

        with monkeypatch.context() as patch:
            patch.setattr(TraceWriter, "append_line", watched)
            handing.engine(folder).run(handing.task(folder))
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


def forget_the_children(path: Path) -> None:
    """Cuts off the last records of the run, which may have begun children that are there."""
    lines = path.read_bytes().splitlines(keepends=True)
    while lines[-1].startswith((b'{"kind":"intent"', b'{"kind":"decide"')):
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
        forgot = chance.random() < 0.3
        if forgot:
            forget_the_children(handing.trace_of(tmp_path))
        ended = {
            path: path.read_bytes()
            for path in (tmp_path / "runs").glob("*.branches/*.trace.jsonl")
            if path.stat().st_size and Trace.load(path).size and Trace.load(path).status == "completed"
        }
        try:
            assert_sound(tmp_path, handing.settle(tmp_path, chance), undisturbed)
            for path, data in ended.items():
                left_alone += 1
                assert path.read_bytes() == data, "a child that ended is left alone"
        except BaseException as error:
            error.add_note(f"cut after record {moment} of {len(everywhere)}, forgot: {forgot}")
            raise
    assert left_alone, "some of the moments come after a child has ended"


# at random moments


class Handers(Nursery):
    def __init__(self) -> None:
        command = [sys.executable, handing.__file__]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.codes: dict[int, int] = {}


@pytest.fixture(scope="module")
def handers() -> Iterator[Handers]:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    handers = Handers()
    yield handers
    handers.process.stdin.close()  # type: ignore[union-attr]
    handers.process.wait(30)
    handers.process.stdout.close()  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many bytes a run and its children write that nobody kills."""
    folder = tmp_path_factory.mktemp("whole")
    handing.engine(folder).run(handing.task(folder))
    return written(folder)


def test_kills_come_while_there_is_something_to_kill(tmp_path: Path, handers: Handers, whole: int) -> None:
    codes = []
    for part in range(20):  # a busy machine may let a run end before it is killed
        folder = tmp_path / str(part)
        folder.mkdir()
        codes.append(handers.kill_after(whole * (part % 5 + 1) / 8, "start", folder, 1))
        if codes.count(-signal.SIGKILL) == 2:
            return
    raise AssertionError(codes)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_run_killed_with_runs_inside_it_is_resumed_to_the_same_states(
    seed: int, tmp_path: Path, handers: Handers, undisturbed: dict[str, Any], whole: int
) -> None:
    chance = random.Random(seed)
    handers.kill_after(whole * chance.uniform(0, 0.8), "start", tmp_path, seed, chance.uniform(0, 0.003))
    for _ in range(chance.randint(0, 3)):
        if list((tmp_path / "runs").glob("*.trace.jsonl")):
            more, each = whole * chance.uniform(0, 0.4), chance.randrange(1 << 30)
            handers.kill_after(more, "resume", tmp_path, each, chance.uniform(0, 0.003))
    paths = list((tmp_path / "runs").glob("*.trace.jsonl"))
    if not paths or not Trace.load(paths[0]).size:
        return  # killed before the header: there was no run yet
    assert_sound(tmp_path, handing.settle(tmp_path, chance), undisturbed)
