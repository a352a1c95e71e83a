"""`refold test …`: tests from recorded runs."""

from pathlib import Path
from typing import Annotated

import typer

from .. import options as o

tests_app = o.command_group("Tests: pin a recorded run as a test of your code.")


@tests_app.command()
def add(
    trace: o.TraceName,
    module: o.Module = None,
    expect: Annotated[
        str | None,
        o.option(
            "The final result that your code must come to. By default, your code must do what was recorded.",
            metavar="RESULT",
        ),
    ] = None,
    name: Annotated[str | None, o.option("The test's name. By default, words of the task.")] = None,
    to: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the test.")] = Path("tests/runs"),
    steps: Annotated[int | None, o.option("Keep only the first K steps.", "--steps", metavar="K", min=1)] = None,
    redact: Annotated[
        list[str] | None,
        o.option("Replace this text, too. What looks like a token is always replaced. Repeatable.", metavar="TEXT"),
    ] = None,
    force: o.Force = False,
    trust: o.Trust = None,
    traces: o.Traces = str(o.RUNS),
    json: o.Json = False,
    traceback: o.Traceback = False,
) -> int:
    """Pin a run as a pytest case and a dataset row.

    The test runs init_state, decide and reduce with the recorded results,
    and fails at the first difference. With --expect, it fails until your
    code comes to that result. No tool and no model is called.
    """
    from ..input.find_trace import find_run, load_trace
    from .pin_run import Pin, pin_run

    loaded = load_trace(find_run(trace, traces))
    return pin_run(loaded, Pin(module, expect, name, to, steps, redact or [], force, trust or ()), json)
