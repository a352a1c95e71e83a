"""`refold trace …`: list, show, draw, blame, compare, check and repair traces."""

from pathlib import Path
from typing import Annotated

import typer

from ... import options as o
from ...input.finding import RUNS, find_trace, newest

trace_app = typer.Typer(help="Look into traces: ls, show, tree, blame, diff, check, repair.")


@trace_app.callback(invoke_without_command=True)
def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@trace_app.command("ls")
def ls(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="The folder of traces.")] = RUNS,
    json: o.Json = False,
) -> int:
    """List the runs of a folder, oldest first."""
    from .list import list_folder

    return list_folder(folder, json)


@trace_app.command()
def show(
    trace: o.TraceName = "",
    records: Annotated[bool, typer.Option("--records", help="Print the trace's lines unchanged.")] = False,
    json: o.Json = False,
    traces: o.Traces = RUNS,
) -> int:
    """Show a run's facts and its steps.

    Without TRACE, show the newest in the folder of traces.
    """
    from .show import show_records, show_trace

    path = find_trace(trace, traces) if trace else newest(traces)
    return show_records(path) if records else show_trace(path, json)


@trace_app.command()
def tree(
    trace: o.TraceName = "",
    full: Annotated[bool, typer.Option("--full", help="Draw everything, however large the family is.")] = False,
    json: o.Json = False,
    traces: o.Traces = RUNS,
) -> int:
    """Draw a run's family: branches, candidates, child runs, forks, ancestors.

    An arrow marks the way to the candidate that was chosen. Without TRACE, draw the newest in the folder of traces.
    """
    from .tree import show_tree

    return show_tree(find_trace(trace, traces) if trace else newest(traces), full, json)


@trace_app.command()
def blame(
    trace: Annotated[
        str, typer.Argument(metavar="[TRACE]", help="A trace file, a run id, a folder.", show_default=False)
    ],
    path: Annotated[
        str,
        typer.Argument(
            metavar="/PATH",
            help="A path in the state; * matches any one member or index, ** at the end everything below.",
            show_default=False,
        ),
    ] = "",
    full: o.Full = False,
    json: o.Json = False,
    traces: o.Traces = RUNS,
) -> int:
    """Show which decisions changed the values at a path.

    Each change is a line, with old and new value. Without TRACE, use the newest in the folder of traces.
    """
    from .blame import show_blame

    if not path and trace.startswith("/"):
        return show_blame(newest(traces), trace, full, json)
    return show_blame(find_trace(trace, traces), path, full, json)


@trace_app.command()
def diff(
    left: Annotated[str, typer.Argument(metavar="A", show_default=False)],
    right: Annotated[str, typer.Argument(metavar="B", show_default=False)],
    all: Annotated[bool, typer.Option("--all", help="Print all steps that differ, side by side.")] = False,
    json: o.Json = False,
    traces: o.Traces = RUNS,
) -> int:
    """Show where two runs first differ, and how their states differ there.

    Ids, seeds, times and hashes are ignored. If the runs were given different things (objective, model, budget), that
    is said, and the steps are compared all the same. Exit 0 if the runs are equal, 1 if not.
    """
    from .diff import compare

    return compare(find_trace(left, traces), find_trace(right, traces), all, json)


@trace_app.command()
def check(
    trace: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TRACE]...", help="Trace files, run ids, or folders (all in them)."),
    ] = None,
    json: o.Json = False,
    traces: o.Traces = RUNS,
) -> int:
    """Check every record: hashes, numbering, structure, snapshots.

    Exit 0 if all traces are whole, 1 if one is damaged. Without TRACE, check all in the folder of traces.
    """
    from .check import check_traces

    named = trace or [str(traces)]
    return check_traces([Path(t) if Path(t).is_dir() else find_trace(t, traces) for t in named], json)


@trace_app.command()
def repair(
    trace: o.TraceName,
    truncate_at_corruption: Annotated[
        bool,
        typer.Option(
            "--truncate-at-corruption", help="Cut off everything from the first damaged line; a copy is kept."
        ),
    ] = False,
    json: o.Json = False,
    traces: o.Traces = RUNS,
) -> int:
    """Cut a torn last record off a trace."""
    from .check import repair_trace

    return repair_trace(find_trace(trace, traces), truncate_at_corruption, json)
