"""Runs that wait, in real processes: killed at random moments, resumed by several at once, ended by signals."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from dying import written

from refold import Trace

sys.path.insert(0, str(Path(__file__).parent))
pausing: Any = import_module("pausing")

ROUNDS = int(os.environ.get("REFOLD_KILLS", "40"))
RACES = max(8, ROUNDS // 5)


def is_there(pid: int) -> bool:
    """Whether a process has not ended, or nobody has heard of its end."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Nursery:
    """A process that has imported everything and forks a child for each thing to do."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, pausing.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self.codes: dict[int, int] = {}

    def start(self, mode: str, folder: Path, seed: int = 0) -> int:
        self._say(mode, folder, seed)
        while True:
            word, number = self._next()
            if word == "started":
                return number

    def end(self, pid: int) -> int:
        """Waits for a child's end; gives its exit code."""
        while pid not in self.codes:
            self._next()
        return self.codes.pop(pid)

    def _next(self) -> tuple[str, int]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().split()
        assert line, "the nursery has died"
        if line[0] == "ended":
            self.codes[int(line[1])] = int(line[2])
        return line[0], int(line[1])

    def kill_after(self, size: float, mode: str, folder: Path, seed: int = 0, seconds: float = 0.0) -> int:
        """Kills a child so long after it has written so many bytes, unless it is done; gives its exit code.

        Such a moment does not depend on how busy the machine is.
        """
        enough = written(folder) + size
        pid = self.start(mode, folder, seed)
        while written(folder) < enough and is_there(pid):
            time.sleep(0.0005)
        time.sleep(seconds)
        self.signal(pid, signal.SIGKILL)
        return self.end(pid)

    def signal(self, pid: int, number: int) -> None:
        self._say("signal", pid, number)

    def _say(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    nursery = Nursery()
    yield nursery
    nursery.process.stdin.close()  # type: ignore[union-attr]
    nursery.process.wait(30)
    nursery.process.stdout.close()  # type: ignore[union-attr]


def wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, f"{path.name} never came"
        time.sleep(0.002)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("undisturbed")
    result = pausing.engine(folder, pausing.answer_to).run(pausing.task(folder))
    assert result.error is None
    assert len(result.state.entries) == 16
    return {**result.state.to_dict(), "folder": ""}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many bytes a run writes that nobody kills."""
    folder = tmp_path_factory.mktemp("whole")
    pausing.engine(folder, pausing.answer_to).run(pausing.task(folder))
    return written(folder)


def test_kills_come_while_there_is_something_to_kill(tmp_path: Path, nursery: Nursery, whole: int) -> None:
    codes = []
    for part in range(20):  # a busy machine may let a run end before it is killed
        folder = tmp_path / str(part)
        folder.mkdir()
        codes.append(nursery.kill_after(whole * (part % 5 + 1) / 8, "handled", folder))
        if codes.count(-signal.SIGKILL) == 2:
            return
    raise AssertionError(codes)


def assert_sound(folder: Path, result: Any, undisturbed: dict[str, object]) -> None:
    """The same final state, every effect that ended run once, every request answered once, the trace in order."""
    assert result.error is None
    assert {**result.state.to_dict(), "folder": ""} == undisturbed
    result.trace.check()
    assert pausing.engine(folder).verify(result.trace) == []
    calls = Counter((folder / "world.txt").read_text().splitlines())
    once = {line: count for line, count in calls.items() if line.startswith("once")}
    assert set(once.values()) == {1}
    assert len(once) == 16
    answered = Counter(name for record in result.trace.records if record.kind == "input" for name in record["answers"])
    assert set(answered.values()) == {1}
    ended = Counter(
        (record.step, intents[record["intent"]]["phase"], intents[record["intent"]]["digest"])
        for intents in [{record.seq: record for record in result.trace.records if record.kind == "intent"}]
        for record in result.trace.records
        if record.kind == "outcome" and not record.get("cancelled")
    )
    assert set(ended.values()) == {1}, "an outcome is used once"
    again = pausing.engine(folder).resume(result.trace.path)
    assert again.trace.data == result.trace.data, "recovering twice gives what recovering once gives"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_run_that_waits_is_killed_and_resumed_to_the_same_state(
    seed: int, tmp_path: Path, nursery: Nursery, undisturbed: dict[str, object], whole: int
) -> None:
    chance = random.Random(seed)
    mode = chance.choice(["start", "handled", "handled"])
    nursery.kill_after(whole * chance.uniform(0, 0.6), mode, tmp_path, seconds=chance.uniform(0, 0.003))
    for _ in range(chance.randint(0, 6)):
        if list((tmp_path / "runs").glob("*.trace.jsonl")):
            more, each = whole * chance.uniform(0, 0.3), chance.randrange(1 << 30)
            nursery.kill_after(more, "resume", tmp_path, each, chance.uniform(0, 0.003))
    paths = list((tmp_path / "runs").glob("*.trace.jsonl"))
    if not paths or not Trace.load(paths[0]).size:
        return  # killed before the header: there was no run yet
    assert_sound(tmp_path, pausing.settle(tmp_path, chance), undisturbed)


def test_the_run_of_one_process_is_answered_in_another_and_ended_in_a_third(
    tmp_path: Path, nursery: Nursery, undisturbed: dict[str, object]
) -> None:
    assert nursery.end(nursery.start("start", tmp_path)) == 0
    trace = Trace.load(pausing.trace_of(tmp_path))
    assert trace.status == "waiting"
    assert sorted(request["prompt"] for request in trace.waiting) == ["approve 0?", "how many 0?"]
    assert nursery.end(nursery.start("resume", tmp_path, 7)) == 0
    assert_sound(tmp_path, pausing.settle(tmp_path, random.Random(0)), undisturbed)


# two processes, one trace


def waiting_for_a_word(folder: Path) -> Path:
    """A trace that waits for one answer, any text."""
    engine = pausing.engine(folder)
    result = engine.run(pausing.task(folder))
    path: Path = result.trace.path
    while result.waiting[0].prompt != "which word 1?":
        result = engine.resume(path, {request.id: pausing.answer_to(request) for request in result.waiting})
    return path


@pytest.mark.parametrize("race", range(RACES))
def test_of_processes_that_resume_one_trace_at_the_same_moment_one_goes_on_and_the_others_are_told(
    race: int, tmp_path: Path, nursery: Nursery
) -> None:
    path = waiting_for_a_word(tmp_path)
    (open_,) = Trace.load(path).waiting
    racers = range(1, 4)
    pids = [nursery.start("at_once", tmp_path, number) for number in racers]
    for number in racers:
        wait_for(tmp_path / f"ready{number}")
    (tmp_path / "go").touch()
    for pid in pids:
        assert nursery.end(pid) == 0
    told = {number: (tmp_path / f"told{number}").read_text() for number in racers}
    went_on = [number for number, status in told.items() if status == "waiting"]
    trace = Trace.load(path)
    trace.check()
    given = [record["answers"][open_["id"]] for record in trace.records if open_["id"] in record.get("answers", {})]
    assert len(given) == 1, told
    assert given == [f"I am {number}" for number in went_on], told
    assert {told[number] for number in racers if number not in went_on} <= {"TraceLockedError", "WaitAnsweredError"}
    assert pausing.engine(tmp_path).verify(path) == []
    (act,) = [record for record in trace.records if record.kind == "decide" and record.step == 1]
    assert act["decision"]["actions"][1]["args"]["what"] == f"step 1 {given[0]}"


# signals


@pytest.mark.parametrize(
    ("number", "code", "name"), [(signal.SIGINT, 130, "KeyboardInterrupt"), (signal.SIGTERM, 143, "SystemExit")]
)
def test_a_signal_while_a_handler_is_waited_for_ends_the_run_and_it_can_be_resumed(
    number: int, code: int, name: str, tmp_path: Path, nursery: Nursery, undisturbed: dict[str, object]
) -> None:
    pid = nursery.start("blocked", tmp_path)
    wait_for(tmp_path / "asked")
    nursery.signal(pid, number)
    assert nursery.end(pid) == code
    assert (tmp_path / "stopped").read_text() == f"{name} cancelled"
    trace = Trace.load(pausing.trace_of(tmp_path))
    assert trace.status == "cancelled"
    assert_sound(tmp_path, pausing.settle(tmp_path, random.Random(1)), undisturbed)
