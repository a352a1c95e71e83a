"""A trace is data from a stranger: whatever it says, each command answers, and touches only the files of the trace."""

import contextlib
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from hostile import READING, Watch, mutate, read_docs, record_all, write_docs

from refold.cli import cli
from refold.engine import ENDINGS
from refold.errors import RefoldError
from refold.traces import Trace, TraceNotFoundError

ROUNDS = int(os.environ.get("REFOLD_HOSTILE_TRACES", "25"))
FIRST = int(os.environ.get("REFOLD_HOSTILE_FIRST", "0"))
_CODES = {2, *(ending.exit_code for ending in ENDINGS.values())}
_watch = Watch()
_OWN = ("/proc/", "/dev/null", "/dev/tty", sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return record_all(tmp_path_factory.mktemp("recorded"))


def drawn(recorded: dict[str, Path], number: int, folder: Path) -> tuple[Path, Path, str]:
    """Copy one of the folders of traces, with one of its traces mutated; give that trace and the whole one."""
    draw = random.Random(number)
    kind = draw.choice(sorted(recorded))
    whole = recorded[kind]
    shutil.copytree(whole.parent, folder)
    path = folder / whole.name
    victim = draw.choice([path, *sorted(folder.rglob("*.trace.jsonl"))])
    docs = read_docs(victim)
    mutate(docs, draw)
    write_docs(victim, docs)
    return path, whole, kind


@pytest.mark.parametrize("number", range(FIRST, FIRST + ROUNDS))
def test_mutated_traces_whose_chain_fits_are_answered(
    recorded: dict[str, Path], number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, whole, kind = drawn(recorded, number, tmp_path / "given")
    (tmp_path / "bare").mkdir()
    os.chdir(tmp_path / "bare")
    named = "strange:lead" if kind == "agent" else "strange:Walk"
    for argv in READING:
        line = [str(each) for each in argv(path, whole)]
        modules = set(sys.modules)
        with _watch.watching():
            code = cli(line)
        said = capsys.readouterr()
        assert code in (0, 1, 2), (line, said)
        assert "--records" in line or "\u202e" not in said.out + said.err
        foreign = [
            each for each in _watch.opened if not each.startswith((*_OWN, str(tmp_path / "given"), str(whole.parent)))
        ]
        assert not foreign, (line, foreign)
        assert not _watch.started, line
        assert not any(name.startswith("strange") for name in set(sys.modules) - modules)
    told = [
        ["verify", path, "--module", named],
        ["resume", path, "--module", named, "-q"],
        ["fork", path, "--module", named, "--at", "1", "-q"],
        ["trace", "repair", path],
        ["trace", "repair", path, "--truncate-at-corruption"],
        ["trace", "check", path],
    ]
    for each in told:
        code = cli([str(word) for word in each])
        said = capsys.readouterr()
        assert code in _CODES, (each, said)


@pytest.mark.parametrize("number", range(FIRST, FIRST + ROUNDS))
def test_what_reading_stumbles_over_is_found_by_check(recorded: dict[str, Path], number: int, tmp_path: Path) -> None:
    path, _, _ = drawn(recorded, number, tmp_path / "given")
    try:
        trace = Trace.load(path)
        trace.check()
    except RefoldError:
        return
    seen: list[Any] = [trace.status, trace.header, trace.final_state, trace.unfinished]
    for step in trace.steps:
        seen += [step.decision, step.effects, step.changes, step.state, step.events]
        with contextlib.suppress(TraceNotFoundError):  # check does not look for blobs
            seen.append(step.observation)
    seen += [trace.state(k) for k in range(trace.step_count + 1)]
    assert trace.find("/**") is not None


@pytest.mark.parametrize("number", [2164, 2165, 4032])
def test_draws_that_once_gave_tracebacks_are_answered(
    recorded: dict[str, Path], number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, whole, _ = drawn(recorded, number, tmp_path / "given")
    for argv in READING:
        line = [str(each) for each in argv(path, whole)]
        assert cli(line) in (0, 1, 2), (line, capsys.readouterr())
