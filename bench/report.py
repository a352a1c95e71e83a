"""The report: a table to read, and JSON to keep."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .figure import Figure, Sizes

_MET = {True: ("yes", "green"), False: ("no", "bold red"), None: ("", "")}


def show(figures: Sequence[Figure], console: Console) -> None:
    """Print the table or, without a terminal, plain lines."""
    if not console.is_terminal:
        for figure in figures:
            met = _MET[figure.met][0]
            line = f"{figure.key:<18} {_number(figure):>8}  {_goal(figure):<8} {met:<4} {figure.title}"
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        return
    table = Table("figure", "measured", "goal", "met", title="refold over lower bounds")
    for figure in figures:
        word, style = _MET[figure.met]
        table.add_row(Text(figure.title), _number(figure), _goal(figure), Text(word, style))
    console.print(table)


def as_json(figures: Sequence[Figure], sizes: Sizes) -> bytes:
    """Return the report as JSON, with all facts for comparisons."""
    document: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": platform.platform(),
        "versions": {name: metadata.version(name) for name in ("refold", "pydantic", "anyio", "orjson")},
        "sizes": sizes,
        "figures": [figure.to_dict() for figure in figures],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _number(figure: Figure) -> str:
    return f"{figure.measured:.0f} %" if figure.unit == "%" else f"{figure.measured:.2f}"


def _goal(figure: Figure) -> str:
    if figure.goal is None:
        return "-"
    sign = "<=" if figure.better == "below" else ">="
    return f"{sign} {figure.goal:g}{' %' if figure.unit == '%' else ''}"
