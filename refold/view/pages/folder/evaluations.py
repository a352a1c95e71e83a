"""The evaluations of the folder.

A page shows the figures and samples of one evaluation, or the comparison of two. Their files are untrusted: no code
that they name is imported, and links are not followed.
"""

import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import RefoldError, TraceError
from ....traces import Trace
from ....traces.index.folder import Folder
from ....traces.index.trace_files import EVALUATION, evaluations_in, stamp_of
from ....traces.index.wanted import check_wanted
from ..nodes import Json
from ..problems import ProblemError, wrong

if TYPE_CHECKING:
    from ....modules.evaluation import EvalResult
    from ....modules.evaluation.result import Estimate

_SAMPLES = "samples.jsonl"
_BYTES = 1 << 28
"""The largest file of samples that is read: some 300,000 samples."""
_SETTINGS = 20
_LISTED = 200
"""How many evaluations, groups and changed tasks are listed."""
_MOST = 500
"""The number of samples in one answer."""
_TEXT = 2_000
"""How many characters of an answer, a reason or an error are sent."""
_PARTED = 200
"""For how many changed tasks the runs are read to find where they differ."""
_KEPT = 4
"""How many results are kept; each has all its samples."""
TOO_LARGE = "a figure in it is too large to be counted with others"
_FILTERS: dict[str, bool | None] = {"passed": True, "failed": False, "none": None}

_results: OrderedDict[tuple[Path, str], "EvalResult"] = OrderedDict()
_summaries: OrderedDict[tuple[Path, str], Json] = OrderedDict()
_keeping = threading.Lock()


def evaluations(folder: Folder, *, quick: bool = False) -> Json:
    """Return the evaluations with their pass rates.

    With `quick`, no samples are read: a card without known figures says `unread`.
    """
    names = evaluations_in(folder.root)
    return {"evaluations": [_summary(folder, name, quick) for name in names[:_LISTED]], "total": len(names)}


def evaluation(folder: Folder, query: Mapping[str, str], offset: int, limit: int) -> Json:
    """Return an evaluation's figures, and a page of samples.

    Raises `ProblemError` if the evaluation is not in the folder.
    """
    name = query.get("id", "")
    result = _result(folder, name)
    show, by = query.get("show", ""), query.get("by", "")
    if show and show not in _FILTERS:
        raise wrong(f"show is {', '.join(_FILTERS)} or nothing, not {show!r}")
    samples = [each for each in result.samples if not show or _verdict(each) is _FILTERS[show]]
    limit = max(1, min(limit, _MOST))
    columns = _columns(result)
    groups = list(result.by(by).items()) if by in columns else []
    others = [each for each in evaluations_in(folder.root) if each != name]
    return {
        **_figures(result),
        "id": name,
        "about": _about(folder, name),
        "scores": [_estimate(score, estimate) for score, estimate in _estimates(result).items()],
        "pass_at": [
            {"k": k, "at": result.pass_at(k), "hat": result.pass_hat(k)} for k in range(1, min(result.repeats, 20) + 1)
        ]
        if result.repeats > 1
        else [],
        "scorers": result.scorers,
        "columns": columns,
        "by": by if groups else None,
        "groups": [_group(label, part) for label, part in groups[:_LISTED]],
        "groups_total": len(groups),
        "samples": [_sample(folder, each) for each in samples[offset : offset + limit]],
        "total": len(samples),
        "next": offset + limit if offset + limit < len(samples) else None,
        "others": others[:_LISTED],
    }


def evaluation_diff(folder: Folder, a: str, b: str, seconds: float) -> Json:
    """Return the comparison of two evaluations.

    The search for the places where runs differ ends after `seconds`.
    """
    from ....modules.evaluation.comparison import Settings, diff_results, parting

    before, after = _result(folder, a), _result(folder, b)
    diff = diff_results(before, after, runs=False)
    until = time.monotonic() + seconds
    tasks: dict[tuple[Any, ...], Json] = {}
    parted: dict[tuple[str | None, str | None], Json] = {}
    settings = Settings()
    for each in diff.changes:
        check_wanted()
        place = (each.id, each.runs)
        if place not in tasks:
            doc = {**asdict(each), "scores": [], "runs": []}
            for name in ("score", "before", "after"):
                del doc[name]
            tasks[place] = doc
            if len(tasks) <= _LISTED:
                if each.runs not in parted and len(parted) < _PARTED and time.monotonic() < until:
                    parted[each.runs] = parting(_trace(folder, each.runs[0]), _trace(folder, each.runs[1]), settings)
                doc |= parted.get(each.runs, {})
                doc["runs"] = [_named(folder, run) for run in each.runs]
        tasks[place]["scores"].append({"score": each.score, "before": each.before, "after": each.after})
    changes = list(tasks.values())
    tests = [asdict(each) | {"significant": each.is_significant} for each in diff.tests]
    return {
        "a": {**_figures(before), "id": a, "scores": []},
        "b": {**_figures(after), "id": b, "scores": []},
        "tests": tests,
        "settings": [asdict(each) for each in settings.most_frequent()[:_SETTINGS]],
        "pairs": settings.pairs,
        "changes": changes[:_LISTED],
        "changes_total": len(changes),
        "only": [{"total": len(tasks), "tasks": tasks[:20]} for tasks in (diff.only_before, diff.only_after)],
        "worse": diff.is_worse,
    }


def _place(folder: Folder, name: str) -> Path:
    if name not in evaluations_in(folder.root):
        raise ProblemError(404, "no_evaluation", f"there is no evaluation {name!r} here")
    return folder.root if name == "." else folder.root / name


def _result(folder: Folder, name: str) -> "EvalResult":
    """Return an evaluation's result, read again if its file has changed."""
    from ....modules.evaluation import EvalResult

    place = _place(folder, name)
    if not _is_small_file(place / EVALUATION, 1 << 20):
        raise ProblemError(409, "unreadable", f"{EVALUATION} of {name!r} is too large")
    if not (place / _SAMPLES).exists():
        raise ProblemError(
            409, "not_scored", f"{name!r} has no scores yet", "They are written when its runs have ended."
        )
    if not _is_small_file(place / _SAMPLES, _BYTES):
        raise ProblemError(409, "unreadable", f"{_SAMPLES} of {name!r} is a link, or larger than {_BYTES >> 20} MB")
    key = place, stamp_of(os.lstat(place / _SAMPLES))
    with _keeping:
        kept = _results.get(key)
    result = kept or EvalResult.load(place)
    with _keeping:
        _results[key] = result
        _results.move_to_end(key)
        while len(_results) > _KEPT:
            _results.popitem(last=False)
    return result


def _is_small_file(path: Path, most: int) -> bool:
    info = os.lstat(path)
    return stat.S_ISREG(info.st_mode) and info.st_size <= most


def _summary(folder: Folder, name: str, quick: bool) -> Json:
    """Return the figures of one evaluation, or why it has none."""
    place = folder.root / name
    try:
        key = place, stamp_of(os.lstat(place / _SAMPLES))
        with _keeping:
            summary = _summaries.get(key)
        if summary is None and quick:
            return {"id": name, "problem": None, "unread": True}
        if summary is None:
            result = _result(folder, name)
            summary = {**_figures(result), "scores": [_estimate("passed", result.passing)] if result.passing else []}
            with _keeping:
                _summaries[key] = summary
                while len(_summaries) > 2 * _LISTED:
                    _summaries.popitem(last=False)
        return {**summary, "id": name, "problem": None, "unread": False}
    except FileNotFoundError:
        return {"id": name, "problem": "not scored yet"}
    except ProblemError as problem:
        return {"id": name, "problem": str(problem)}
    except OverflowError:
        return {"id": name, "problem": TOO_LARGE}
    except (RefoldError, OSError) as error:
        return {"id": name, "problem": str(error)}


def _figures(result: "EvalResult") -> Json:
    return {
        "name": result.name,
        "runs": len(result.samples),
        "tasks": len({each.id for each in result.samples}),
        "passed": sum(_verdict(each) is True for each in result.samples),
        "failed": sum(_verdict(each) is False for each in result.samples),
        "none": sum(_verdict(each) is None for each in result.samples),
        "cost": result.cost,
        "unpriced": result.spent.unpriced,
        "tokens": result.tokens,
        "seconds": result.seconds,
    }


def _about(folder: Folder, name: str) -> Json:
    """Return a description of what was evaluated."""
    from ....modules.evaluation.folder import read_about

    about = read_about(_place(folder, name))
    return {key: _cut(about[key]) for key in ("module", "replay_of") if isinstance(about.get(key), str)}


def _verdict(sample: Any) -> bool | None:
    verdict: bool | None = sample.passed if sample.is_scored else None
    return verdict


def _estimates(result: "EvalResult") -> "dict[str, Estimate | None]":
    return {
        "passed": result.passing,
        **{f"score {k}" if k == "passed" else k: v for k, v in result.metrics_summary.items()},
    }


def _estimate(score: str, estimate: "Estimate | None") -> Json:
    if estimate is None:
        return {"score": score, "mean": None, "low": None, "high": None, "tasks": 0, "runs": 0}
    return {"score": score, **estimate.to_dict()}


def _group(label: str, part: "EvalResult") -> Json:
    scores = [_estimate(score, estimate) for score, estimate in _estimates(part).items()]
    return {**_figures(part), "label": _cut(label), "scores": scores}


def _columns(result: "EvalResult") -> list[str]:
    """Return the columns that group tasks: those with fewer values than tasks."""
    values: dict[str, set[str]] = {}
    for sample in result.samples:
        for column, value in sample.columns.items():
            if isinstance(value, str | int | float | bool):
                values.setdefault(column, set()).add(str(value))
    tasks = len({each.id for each in result.samples})
    return [column for column, distinct in values.items() if len(distinct) <= min(_LISTED, max(1, tasks - 1))]


def _sample(folder: Folder, sample: Any) -> Json:
    return {
        "id": sample.id,
        "repeat": sample.repeat,
        "run": _named(folder, sample.run_id),
        "status": sample.status,
        "passed": _verdict(sample),
        "scores": {
            name: {"value": each.value, "passed": each.passed, "reason": _cut(each.reason)}
            for name, each in sample.scores.items()
        },
        "errors": {name: _cut(text) for name, text in sample.score_errors.items()},
        "output": _cut(sample.output),
        "error": _cut(sample.error),
        "steps": sample.steps,
        "tokens": sample.tokens,
        "cost": sample.cost,
        "unpriced": sample.unpriced,
        "seconds": sample.seconds,
    }


def _cut(text: Any) -> str | None:
    return None if text is None else text if len(text) <= _TEXT else f"{text[:_TEXT]}…"


def _named(folder: Folder, run_id: str | None) -> str | None:
    return None if run_id is None else folder.named(run_id)


def _trace(folder: Folder, run_id: str | None) -> Trace | None:
    """Return a run's trace, or None if the folder has none.

    The trace is looked up among the folder's files: the run's id is never used as a path.
    """
    name = _named(folder, run_id)
    if name is None:
        return None
    try:
        return Trace.load(folder.path(name))
    except (TraceError, KeyError):
        return None
