"""The bars below a live run: budgets and the last changed paths."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from .progress import Progress
from .text import brief, clean, seconds_text

_BAR = 24
_PATHS = 4
"""The largest number of changed paths that are named."""


def bar(share: float, width: int) -> Text:
    """Return a bar filled to a share of its width.

    It is green, yellow from 80 %, and red when full.
    """
    filled = max(0, min(width, int(share * width)))
    style = "red" if share >= 1 else "yellow" if share >= 0.8 else "green"
    return Text("━" * filled, style).append("─" * (width - filled), "dim")


def live_lines(progress: Progress, now: float, width: int) -> Iterator[RenderableType]:
    """Yield a run's bars and changed paths, fitted to `width`.

    `now` is in seconds since the epoch.
    """
    if progress.budget:
        yield _budget_bars(progress, now, width)
    if progress.last_changed:
        yield changed_text(progress.last_changed, width)


def changed_text(paths: list[str], width: int) -> Text:
    """Return the paths that a step changed, in one line."""
    shown = [brief(clean(path), 40) for path in paths[:_PATHS]]
    more = f" and {len(paths) - _PATHS} more" if len(paths) > _PATHS else ""
    text = Text("  changed  ", "dim", no_wrap=True, overflow="ellipsis").append("  ".join(shown) + more)
    text.truncate(max(8, width), overflow="ellipsis")
    return text


def _budget_bars(progress: Progress, now: float, width: int) -> Table:
    budget, seconds, steps = progress.budget, progress.seconds(now), progress.before + progress.steps
    grid = Table.grid(padding=(0, 1))
    length = min(_BAR, max(4, width - 36))
    rows = [
        ("steps", steps, budget.get("max_steps"), f"{steps} of {budget.get('max_steps')}"),
        ("time", seconds, budget.get("max_runtime_seconds"), seconds_text(seconds)),
        ("tokens", progress.tokens, budget.get("max_tokens"), f"{progress.tokens:,}"),
        ("cost", progress.cost, budget.get("max_cost_usd"), f"{progress.cost:.4f} USD"),
    ]
    for name, used, limit, text in rows:
        if limit is None:
            continue
        if name == "time":
            text += f" of {seconds_text(limit)}"
        elif name in ("tokens", "cost"):
            text += f" of {limit:,}"
        grid.add_row(Text(f"  {name}", "dim"), bar(used / limit, length), Text(text, no_wrap=True))
    return grid
