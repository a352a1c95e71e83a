"""A failed call says why: `result.value` raises its error, and an error of `reduce` names the call."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from refold import Action, AgentModule, Decision, Engine, Observation, StateSchema
from refold.cli.app import app


class Lines(StateSchema):
    lines: list[str] = []


def lines_of(name: str) -> list[str]:
    if name == "missing":
        raise FileNotFoundError(2, "No such file", name)
    return [f"line of {name}"]


class Reader(AgentModule[Lines]):
    """Reads files, and takes each result as `how` says."""

    tools = {"lines_of": lines_of}

    def __init__(self, how: str, names: tuple[str, ...] = ("here", "missing")) -> None:
        self.how = how
        self.names = names

    def init_state(self, task: str) -> Lines:
        return Lines()

    def decide(self, state: Lines) -> Decision:
        if state.current_step:
            return Decision.final("; ".join(state.lines))
        return Decision.act([Action("lines_of", {"name": name}) for name in self.names])

    def reduce(self, state: Lines, decision: Decision, observation: Observation) -> None:
        for result in observation.results:
            if self.how == "value":
                state.lines += result.value
            elif self.how == "output":
                state.lines += [*result.output]
            elif result.ok:
                state.lines += result.value


def test_value_is_the_output_of_a_call_that_was_ok() -> None:
    assert Engine(Reader("value", ("here",))).run("t").final_result == "line of here"
    assert Engine(Reader("ok")).run("t").final_result == "line of here"


def test_value_raises_the_error_of_a_call_that_failed() -> None:
    result = Engine(Reader("value")).run("t")
    assert result.error is not None
    assert (result.error.type, result.error.phase) == ("EffectError", "reduce")
    assert result.error.message == "FileNotFoundError: [Errno 2] No such file: 'missing'"


@pytest.mark.parametrize(("names", "more"), [(("missing",), ""), (("missing", "missing"), ", and 1 more failed")])
def test_an_error_of_reduce_names_the_call_that_failed(names: tuple[str, ...], more: str, tmp_path: Path) -> None:
    result = Engine(Reader("output", names), traces=tmp_path).run("t")
    assert result.error is not None
    first, note = result.error.message.split("\n")
    assert (result.error.type, first) == ("TypeError", "Value after * must be an iterable, not NoneType")
    assert note == (
        "In this step, tool lines_of failed (FileNotFoundError: [Errno 2] No such file: 'missing'), so its output is "
        f"None{more}. Check result.ok, or read result.value, which raises the tool's error."
    )
    shown = CliRunner().invoke(app, ["trace", "show", str(result.trace.path)]).output
    assert "left unfinished" not in shown
    assert "failed: FileNotFoundError: [Errno 2] No such file: 'missing'" in shown
    assert "not committed" in shown
