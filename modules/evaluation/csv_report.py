"""The samples of a result as CSV."""

import csv
import io
from typing import Any

from .result import EvalResult

_COLUMNS = (
    *("id", "repeat", "run_id", "status", "passed", "output", "error"),
    *("steps", "tokens", "cost", "unpriced", "seconds"),
)


def csv_report(result: EvalResult) -> str:
    """Return a CSV report with a line for each sample.

    A line has the sample's facts, a column for each score, and the errors that scorers raised. A text that a
    spreadsheet would take for a formula gets a leading apostrophe (CWE-1236).
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    scorers = result.scorers
    writer.writerow([*_COLUMNS, *(f"score {name}" for name in scorers), "score_errors"])
    for sample in result.samples:
        raised = "; ".join(f"{name}: {text}" for name, text in sample.score_errors.items())
        facts = [getattr(sample, name) for name in _COLUMNS]
        values = [sample.metrics.get(name) for name in scorers]
        writer.writerow([_cell(each) for each in (*facts, *values, raised)])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
