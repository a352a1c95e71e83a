"""SWE-bench: issues of repositories, resolved if the right tests pass.

Jimenez et al. 2023, arXiv:2310.06770; SWE-bench/SWE-bench, `docs/guides/datasets.md` and `harness/grading.py`. The
tests run in the benchmark's own containers: write predictions, run its harness, and score its reports.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..datasets import Row
from ..datasets.files import read_rows
from ..errors import EvaluationError
from ..result import EvalResult
from ..scorers import Score, Scorer
from .rows import required, row_of

_PASSED = ("PASSED", "XFAIL")
_COLUMNS = ("instance_id", "repo", "base_commit", "problem_statement", "FAIL_TO_PASS", "PASS_TO_PASS")


def load_swe_bench(path: Path) -> list[Row]:
    """Return the issues of a JSONL file.

    The objective is the problem statement; the target is the tests. The task and its columns have neither the reference
    patch nor the tests' patch.
    """
    rows = []
    for row in required(path, read_rows(path), _COLUMNS):
        target = {name: _tests(row[name], name) for name in ("FAIL_TO_PASS", "PASS_TO_PASS")}
        columns = {name: row.get(name) for name in ("instance_id", "repo", "base_commit", "version", "difficulty")}
        rows.append(row_of(str(row["instance_id"]), row["problem_statement"], target, columns))
    return rows


def resolved(target: Mapping[str, Iterable[str]], statuses: Mapping[str, str]) -> bool:
    """Return whether an issue is resolved, by its tests' statuses.

    `statuses` has the status of each test in the harness's log. An issue is resolved if all FAIL_TO_PASS tests pass and
    no PASS_TO_PASS test fails. An expected failure passes. A test that is not in the log fails. A skipped test counts
    as failed in FAIL_TO_PASS, and not in PASS_TO_PASS.
    """
    fixed = all(statuses.get(test) in _PASSED for test in target["FAIL_TO_PASS"])
    return fixed and all(statuses.get(test) in (*_PASSED, "SKIPPED") for test in target["PASS_TO_PASS"])


def swe_bench(statuses: Mapping[str, Mapping[str, str]] | str | Path, *, name: str = "resolved") -> Scorer:
    """Score 1 if the issue is resolved.

    `statuses` has the tests' statuses of each instance, or is the path of a JSON file with them. A run without a patch
    scores 0; a patch that was not tested is an error of the scorer.
    """
    known = _read(Path(statuses)) if isinstance(statuses, str | Path) else statuses

    def score(answer: str | None, target: dict[str, Any], columns: dict[str, Any]) -> Score:
        if not (answer or "").strip():
            return Score(0.0, False, "no patch")
        instance = columns["instance_id"]
        if instance not in known:
            raise EvaluationError(f"the harness has no statuses of {instance}: run it on the predictions first")
        found = resolved(target, known[instance])
        return Score(float(found), found)

    return Scorer(score, name=name)


def swe_bench_predictions(result: EvalResult, model: str) -> str:
    """Return the predictions of a result as the harness reads them.

    Each line is a JSON object. Only the first repeat of each task has a line.
    """
    lines = [
        {"instance_id": each.id, "model_name_or_path": model, "model_patch": each.output or ""}
        for each in result.samples
        if each.repeat == 1
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def _tests(given: Any, column: str) -> list[str]:
    """Return a list of tests from a list or from JSON text."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            raise EvaluationError(f"{column} must be a list or JSON text of a list, got {given!r:.80}") from None
    if not isinstance(given, list):
        raise EvaluationError(f"{column} must be a list or JSON text of a list, got {given!r:.80}")
    return [str(each) for each in given]


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        found: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EvaluationError(f"{path} cannot be read: {error}") from None
    return found
