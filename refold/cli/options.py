"""The arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

RUNS = Path("runs")
"""The default folder of traces."""


def runs_named(context: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of runs that complete what was typed.

    A shell completes names of files itself if there are none.
    """
    from .input.run_ids import run_ids

    return run_ids(str(context.params.get("traces") or RUNS), incomplete)


TraceName = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="A trace file, a run id in the folder of traces, a folder (its newest), or a run of a store: URL#RUN.",
        show_default=False,
        autocompletion=runs_named,
    ),
]
Traces = Annotated[
    str,
    typer.Option(
        "--traces",
        metavar="DIR|URL",
        help="The folder of traces, or the URL of a store (sqlite:///runs.db, postgresql://…).",
    ),
]
Module = Annotated[
    str | None,
    typer.Option(
        "--module",
        metavar="MODULE:NAME",
        help="The AgentModule or Agent: a class, an instance, or a function that makes one, in a module or in a file "
        "(solver.py:make).",
    ),
]
Trust = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="DIR",
        help="Load code that the trace names from this folder too, not only from the current one. Repeatable.",
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", envvar="REFOLD_YES", help="Start what the trace names without asking.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, also for an error.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="Print the whole traceback of an error.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the answer.")]
Full = Annotated[bool, typer.Option("--full", help="Don't cut long values.")]
MaxSteps = Annotated[int | None, typer.Option(min=1, help="Steps that a run may take.", show_default=False)]
MaxSeconds = Annotated[
    float | None, typer.Option(help="Seconds that the run may work; waiting does not count.", show_default=False)
]
MaxTokens = Annotated[
    int | None, typer.Option(min=1, help="Tokens that the run may use, in and out.", show_default=False)
]
MaxCost = Annotated[float | None, typer.Option(help="US dollars that the run may spend.", show_default=False)]
Durability = Annotated[
    Literal["process", "power", "none"],
    typer.Option(help="What written records survive: a crash of the process, a power failure too, or neither."),
]
Workspace = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Where a task's relative paths start; by default the current folder.")
]

WithoutFiles = Annotated[
    bool,
    typer.Option("--without-files", help="Go on although files that the run changed are gone with its environment."),
]

Executor = Annotated[
    Literal["inline", "local", "ray"] | None,
    typer.Option(help="Where runs work: one after another, on this machine, on Ray.", show_default=False),
]
Processes = Annotated[int | None, typer.Option(min=1, help="Processes of the executor `local`.", show_default=False)]
Concurrency = Annotated[
    int | None, typer.Option(min=1, help="The most concurrent runs, over all processes.", show_default=False)
]


def budget_of(
    steps: int | None, seconds: float | None, tokens: int | None, cost: float | None
) -> dict[str, float | int]:
    """Return the limits that were given, under the names that `RuntimeBudget` uses."""
    given = {"max_steps": steps, "max_runtime_seconds": seconds, "max_tokens": tokens, "max_cost_usd": cost}
    return {name: limit for name, limit in given.items() if limit is not None}
