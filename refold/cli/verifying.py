"""What `refold verify` does: runs a trace's hooks again and prints where they do something else."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from ..engine import AgentModule, Divergence, Engine
from ..traces import PatchError, Trace, changes_of
from .failures import BAD_INPUT
from .out import console, say, stdout_to_stderr, write_json
from .resuming import runner_of
from .step_view import change_lines
from .text import LONG, clean, count_text, cut, value_text


def verify_trace(path: Path, module: str | None, trust: Sequence[Path], as_json: bool) -> int:
    """Verifies a trace; gives 0 where the code does what was recorded, 1 where it does not."""
    trace = Trace.load(path)
    with stdout_to_stderr():
        runner = runner_of(trace, module, trust, verifying=True)
        found = Engine(runner if isinstance(runner, AgentModule) else runner.agent.module()).verify(trace)
    if as_json:
        write_json({"trace": str(path), "steps": trace.step_count, "divergences": [each.to_dict() for each in found]})
        return 1 if found else 0 if trace.step_count else BAD_INPUT
    out = console()
    if not found and not trace.step_count:
        say(out, Text(f"nothing to verify: {clean(str(path))} holds no committed step", "yellow"))
        return BAD_INPUT
    steps = count_text(trace.step_count, "step")
    if not found:
        say(out, Text(f"{steps} verified: the code does what the trace recorded", "green"))
        return 0
    for each in found:
        say(out, *_lines(trace, each))
    say(out, Text(f"{count_text(len(found), 'divergence')} in {steps}: the code has changed since {path} was written"))
    return 1


def _lines(trace: Trace, divergence: Divergence) -> Iterator[Text]:
    yield Text(f"step {divergence.step}, {divergence.phase}", "bold red")
    recorded: Any = divergence.expected
    if divergence.phase == "reduce" and divergence.step < len(trace.steps):
        recorded = trace.steps[divergence.step].state
    try:
        changes = changes_of(recorded, divergence.patch)
    except PatchError:
        changes = ()
    for change in changes:
        yield from change_lines(change, LONG, words=("recorded", "now"))
    if not changes:
        yield Text(f"    recorded  {cut(value_text(divergence.expected), LONG)}")
        now = divergence.actual
        yield Text(f"    now       {cut(clean(now) if isinstance(now, str) else value_text(now), LONG)}")
