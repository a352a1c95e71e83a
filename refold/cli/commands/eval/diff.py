"""`refold eval diff`: compare two evaluations.

It shows the tasks that changed, whether the changes are more than chance, and where the runs differ.
"""

from pathlib import Path

from rich.text import Text

from ....modules.evaluation import EvalResult
from ....modules.evaluation.comparison import EvalDiff, diff_results
from ...render.output import console, say, table, write_json
from ...render.text import brief, clean, count_text

_SHOWN = 40


def diff_folders(before: Path, after: Path, traces: str | None, as_json: bool) -> int:
    """Compare two evaluations; return 1 if a score is significantly worse."""
    found = diff_results(EvalResult.load(before, traces), EvalResult.load(after, traces))
    if as_json:
        write_json(found.to_dict())
    else:
        show_diff(found)
    return int(found.is_worse)


def show_diff(found: EvalDiff) -> None:
    """Print a comparison."""
    out = console()
    rows = []
    for each in found.tests:
        verdict = "more than chance" if each.is_significant else "may be chance"
        cells = [
            each.score,
            f"{each.before:.3f}",
            f"{each.after:.3f}",
            f"+{each.better} −{each.worse}",
            f"{each.tasks}",
        ]
        cells += [f"{each.corrected:.3g}", verdict if each.better or each.worse else "the same"]
        rows.append([Text(clean(cell)) for cell in cells])
    table(out, ["score", "A", "B", "tasks better, worse", "tasks", "p (Holm)", ""], rows, numbers=(1, 2, 4, 5))
    for change in found.changes[:_SHOWN]:
        style = "red" if change.after < change.before else "green"
        line = Text(f"{clean(change.id)}  {clean(change.score)} {change.before:.3g} -> {change.after:.3g}", style)
        place = f"  parts at step {change.step}, {change.phase}: " if change.step is not None else "  "
        say(out, line.append(f"{place}{brief(clean(change.difference), 200)}".rstrip(), "dim"))
    if len(found.changes) > _SHOWN:
        say(out, Text(f"… {count_text(len(found.changes) - _SHOWN, 'more change')}; --json has all"))
    for side, tasks in (("A", found.only_before), ("B", found.only_after)):
        if tasks:
            names = ", ".join(map(clean, tasks[:5]))
            say(out, Text(f"only {side} has {count_text(len(tasks), 'task')}: {names}{' …' if len(tasks) > 5 else ''}"))
