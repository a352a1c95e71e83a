"""Evaluation by counterfactual: new code on recorded runs.

a run that the new code repeats            costs nothing: its scores are computed from its trace
a run with a first decision that differs   is forked from the state before it, with recorded effects reused as long
                                           as the fork makes the same requests
a run whose first state differs            is run anew
"""

import json
import os
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from ...engine import Engine
from ...errors import NotATraceError, RecordedValueError, RefoldError
from ...printable import message_of
from ...traces import Trace
from ...traces.file.append_only import SUFFIX
from ..run_sets.code import code_of
from ..run_sets.drive import one_error
from .comparison import trace_of
from .datasets import Dataset, Row
from .errors import EvaluationError
from .evaluation import sample_of, score_sample
from .folder import ROWS, RUNS, alone, open_runs, read_about, read_rows, write_about, write_samples, writing
from .result import EvalResult
from .sample import Sample
from .scorers import EvaluatedRun, Scorer, as_scorers, success_criteria

FORKS = "replay.jsonl"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of running one recorded run with the new code.

    Attributes:
        kind: "same", "forked", "anew" or "failed".
        run_id: the run that was scored: the recorded run if nothing changed, otherwise the new one.
        step: the first step that differs; None if nothing changed.
        phase: "init", "decide" or "reduce".
        calls: the number of calls that ran live and were charged, without reused calls.
        error: why there is no new run.
    """

    key: str
    kind: str
    run_id: str | None = None
    step: int | None = None
    phase: str | None = None
    calls: int = 0
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True)
class Counterfactual:
    """Scores of recorded runs, and of these runs with new code.

    `after` has the cost of the changes only: reused calls cost nothing.
    """

    before: EvalResult
    after: EvalResult
    replayed: tuple[Replayed, ...] = field(default=())

    @property
    def counts(self) -> dict[str, int]:
        """The number of runs by kind."""
        return dict(Counter(each.kind for each in self.replayed))


async def replay_evaluation(
    folder: str | Path,
    module: Any,
    out: str | Path,
    *,
    scorers: Any = None,
    assert_scores: Sequence[str] | None = None,
    engine: Mapping[str, Any] | None = None,
    concurrency: int = 8,
    traces: str | None = None,
) -> Counterfactual:
    """Score new code on the recorded runs of an evaluation.

    The same call again makes no second fork: `out` keeps the result of each run, and forks that were cut off are
    resumed there. Recorded runs do not change.

    Args:
        folder: the folder of the evaluation.
        module: the new AgentModule or Agent.
        out: the folder of the new evaluation.
        scorers: as for an Evaluation; both sides are scored with them. They are required unless only success criteria
            scored the recorded evaluation.
        assert_scores: as for an Evaluation.
        engine: options of the Engine that forks.
        concurrency: the largest number of forks that run at once.
        traces: the store of the recorded runs, if it is a server's.

    Raises EvaluationError if `out` is the recorded evaluation itself or another call is at work there, if scorers are
    missing, or if no recorded run has ended.
    """
    folder, out = Path(folder), Path(out)
    if os.path.realpath(folder) == os.path.realpath(out):
        raise EvaluationError(f"{out} is the folder of the recorded evaluation; give the new one another folder")
    about, rows = read_about(folder), {row.id: row for row in read_rows(folder)}
    recorded = EvalResult.load(folder, traces)
    ended = [each for each in recorded.samples if each.is_scored and each.id in rows]
    if not ended:
        raise EvaluationError(
            f"there is nothing to replay in {folder}: none of its {len(recorded.samples)} runs has ended, except by a "
            "failure of the machine; run the evaluation again first"
        )
    used = as_scorers(scorers) or _criteria_alone(folder, about)
    names = [each.name for each in used]
    if unknown := [each for each in assert_scores or () if each not in names]:
        raise EvaluationError(f"assert_scores names {unknown[0]!r}; the scorers are {', '.join(names)}")
    code = code_of(module)
    if _is_used(out) and read_about(out).get("code") != code.digest:
        raise EvaluationError(f"{out} has runs of other code; use another folder, or remove it")
    name = f"{recorded.name}, replayed"
    about = {key: value for key, value in about.items() if key not in ("traces", "set")}  # the forks are in the folder
    about |= {"name": name, "scorers": names, "replay_of": str(folder), "module": code.name, "code": code.digest}
    with alone(out / FORKS):  # two calls would make two forks of each run, or resume each other's
        write_about(out, about, Dataset(tuple(rows.values()), name))
        (out / RUNS).mkdir(exist_ok=True)
        forks = Engine(module, **{**(engine or {}), "traces": out / RUNS})
        replay = _Replay(folder, traces, out, forks, used, assert_scores)
        limiter = anyio.CapacityLimiter(concurrency)
        found: dict[str, tuple[Sample, Sample, Replayed]] = {}

        async def one(sample: Sample) -> None:
            async with limiter:
                found[sample.key] = await replay.sample(sample, rows[sample.id])

        async with one_error(), anyio.create_task_group() as group:
            for sample in ended:
                group.start_soon(one, sample)
        ordered = [found[sample.key] for sample in recorded.samples if sample.key in found]
        after = [each[1] for each in ordered]
        write_samples(out, after, ())
        return Counterfactual(
            EvalResult([each[0] for each in ordered], recorded.name, folder, digest=recorded.digest),
            EvalResult(after, name, out, digest=recorded.digest),
            tuple(each[2] for each in ordered),
        )


def _is_used(out: Path) -> bool:
    """Return whether a folder is used.

    What a call leaves that was killed at its beginning does not count.
    """
    own = (FORKS, ROWS)
    return out.is_dir() and any(path.name not in own and path.suffix != ".part" for path in out.iterdir())


class _Replay:
    """One counterfactual: recorded samples, and their runs with the new code."""

    def __init__(
        self,
        folder: Path,
        traces: str | None,
        out: Path,
        engine: Engine,
        scorers: list[Scorer],
        asserted: Sequence[str] | None,
    ) -> None:
        self.folder = folder
        self._recorded = open_runs(folder, traces)
        self._new = open_runs(out)
        self.out = out
        self.engine = engine
        self.scorers = scorers
        self.asserted = asserted
        self._kept = {each.key: each for each in _read(out / FORKS)}
        self._begun = _begun(out / RUNS, {each.run_id for each in self._kept.values()})

    async def sample(self, recorded: Sample, row: Row) -> tuple[Sample, Sample, Replayed]:
        """Return both samples of a run, and the new code's result.

        The first sample is of the recorded run, the second of the run with the new code.
        """
        trace = trace_of(self._recorded, recorded.run_id)
        if trace is None:
            gone = Replayed(recorded.key, "failed", error=f"no trace of run {recorded.run_id}")
            return recorded, _lost(recorded, gone), gone
        before = await self._scored(trace, row, recorded, self.folder)
        told = self._kept.get(recorded.key) or await self._replayed(recorded, trace, row)
        if told.kind == "same":
            return before, replace(before, cost=0.0, tokens=0, seconds=0.0), told
        new = trace_of(self._new, told.run_id)
        if told.kind == "failed" or new is None:
            return before, _lost(recorded, told), told
        source = trace if told.kind == "forked" else None
        return before, await self._scored(new, row, recorded, self.out, source), told

    async def _replayed(self, recorded: Sample, trace: Trace, row: Row) -> Replayed:
        try:
            told = await self._run(recorded, trace, row)
        except RefoldError as error:
            return Replayed(recorded.key, "failed", error=f"{type(error).__name__}: {message_of(error)}")
        with writing(self.out / FORKS), (self.out / FORKS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(told.to_dict()) + "\n")
        return told

    async def _run(self, recorded: Sample, trace: Trace, row: Row) -> Replayed:
        differ = await self.engine.averify(trace)
        if not differ:
            same = self.out / RUNS / f"{trace.run_id}{SUFFIX}"
            with writing(same):
                same.write_bytes(trace.data)
            return Replayed(recorded.key, "same", trace.run_id)
        first = min(differ, key=lambda each: each.step)
        kind = "anew" if first.phase == "init" else "forked"
        begun = self._begun.get((kind, recorded.key if kind == "anew" else trace.run_id))
        if begun is not None:
            result = await self.engine.aresume(begun)
        elif kind == "anew":
            result = await self.engine.arun(row.task.model_copy(update={"id": recorded.key}))
        else:
            result = await self.engine.afork(trace, first.step, reuse_effects=True)
        if result.error is not None and result.error.type == RecordedValueError.__name__:
            raise RecordedValueError(result.error.message)
        step = 0 if kind == "anew" else first.step
        return Replayed(recorded.key, kind, result.run_id, step, first.phase, result.usage.calls)

    async def _scored(
        self, trace: Trace, row: Row, recorded: Sample, folder: Path, source: Trace | None = None
    ) -> Sample:
        run = EvaluatedRun(trace, row, recorded.repeat, folder, source)
        plain = replace(sample_of(trace, row, recorded.repeat), key=recorded.key, steps=len(run.steps))
        return await score_sample(plain, run, self.scorers, self.asserted) if plain.is_scored else plain


def _criteria_alone(folder: Path, about: Mapping[str, Any]) -> list[Scorer]:
    """Return the success criteria, if only they scored the recorded evaluation.

    Other scorers are code, and the folder keeps only their names, so they cannot be called again.
    """
    criteria = success_criteria()
    names = about.get("scorers", [])
    if names != [criteria.name]:
        raise EvaluationError(
            f"{folder} was scored by {', '.join(map(str, names))}; give the same scorers: "
            "`refold eval replay EVAL.yaml` takes those of the evaluation's file, --scorer names one"
        )
    return [criteria]


def _lost(recorded: Sample, told: Replayed) -> Sample:
    return Sample(
        recorded.id, recorded.repeat, recorded.key, None, "errored", error=told.error, columns=recorded.columns
    )


def _read(path: Path) -> list[Replayed]:
    """Return the results that earlier calls have recorded.

    A last line that was cut off is removed: the next one would be written behind it.
    """
    if not path.is_file():
        return []
    with writing(path), path.open("r+b") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            file.truncate(whole)
    lines = data[:whole].decode("utf-8", "replace").split("\n")[:-1]
    try:
        return [Replayed(**json.loads(line)) for line in lines]
    except (ValueError, TypeError) as error:
        raise EvaluationError(f"{path} cannot be read: {error}; use another folder") from None


def _begun(folder: Path, kept: Container[str | None]) -> dict[tuple[str, str], Path]:
    """Return the runs that an earlier call started and did not finish.

    The key is the kind of the run, with the id of its source, or of its task if it was run anew.
    """
    found: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if path.name.removesuffix(SUFFIX) not in kept:
            with suppress(NotATraceError):  # cut off before its header was whole, so nothing has happened in it
                trace = Trace.load(path)
                parent = trace.parent or {}
                if parent.get("kind") == "fork":
                    found["forked", str(parent.get("run"))] = path
                elif not parent:
                    found["anew", str(trace.header["task"]["id"])] = path
    return found
