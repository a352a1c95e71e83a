"""A run whose files are gone with its environment is resumed or forked only by somebody who says so."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from refold import Action, AgentModule, Decision, Engine, Observation, RuntimeBudget, StateSchema, Task, ask, run_child
from refold.cli.app import app
from refold.errors import TaskError
from refold.tasks import EnvSpec, current_environment


class Pages(StateSchema):
    pages: list[str] = []


def write(name: str) -> str:
    current_environment().write_text(name, f"page {name}")
    return name


def remove(name: str) -> str:
    current_environment().path(name).unlink()
    return name


async def confirm() -> str:
    await ask("publish?")
    return ", ".join(current_environment().list())


class Writer(AgentModule[Pages]):
    """Writes or removes files, asks a person, and lists the files."""

    tools = {"write": write, "remove": remove, "confirm": confirm}

    def __init__(self, *actions: tuple[str, str]) -> None:
        self.actions = actions

    def init_state(self, task: str) -> Pages:
        return Pages()

    def decide(self, state: Pages) -> Decision:
        k = state.current_step
        if k < len(self.actions):
            return Decision.act(Action(self.actions[k][0], {"name": self.actions[k][1]}))
        return Decision.act(Action("confirm")) if k == len(self.actions) else Decision.final(state.pages[-1])

    def reduce(self, state: Pages, decision: Decision, observation: Observation) -> None:
        state.pages += [str(result.value) for result in observation.results]


class Book(Writer):
    """A Writer that the command line can make."""

    def __init__(self) -> None:
        super().__init__(("write", "new.txt"))


def scratch(source: Path, kind: str = "scratch") -> Task:
    source.mkdir(exist_ok=True)
    (source / "old.txt").write_text("old")
    config = {"source": str(source)} if kind == "scratch" else {}
    return Task(objective="write", env_spec=EnvSpec(type=kind, config=config))


@pytest.mark.parametrize(
    ("actions", "files"),
    [
        ([("write", "new.txt")], ["new.txt"]),
        ([("write", "old.txt")], ["old.txt"]),
        ([("remove", "old.txt")], ["old.txt"]),
        ([("write", "b/c.txt"), ("write", "a.txt")], ["a.txt", "b/c.txt"]),
        ([("write", f"{number:02}.txt") for number in range(25)], [f"{number:02}.txt" for number in range(20)]),
    ],
)
def test_resume_says_which_files_are_gone(actions: list[Any], files: list[str], tmp_path: Path) -> None:
    engine = Engine(Writer(*actions), traces=tmp_path / "runs", budget=RuntimeBudget(max_steps=40))
    waiting = engine.run(scratch(tmp_path / "source"))
    assert waiting.status == "waiting", waiting.error
    before = waiting.trace.data
    with pytest.raises(TaskError, match="had changed files that are gone with its scratch environment") as lost:
        engine.resume(waiting.trace, "yes")
    assert lost.value.code == "files_lost"
    assert f": {', '.join(files)}" in str(lost.value)
    assert (" and 5 more" in str(lost.value)) == (len(actions) == 25)
    assert "pass without_files=True (--without-files)" in str(lost.value)
    assert waiting.trace.path is not None
    assert waiting.trace.path.read_bytes() == before
    told = engine.resume(waiting.trace, "yes", without_files=True)
    assert told.final_result == "old.txt"


def test_fork_says_which_files_are_gone(tmp_path: Path) -> None:
    engine = Engine(Writer(("write", "new.txt")), on_wait=lambda request: "yes")
    done = engine.run(scratch(tmp_path / "source"))
    assert done.final_result == "new.txt, old.txt"
    for at in (None, 1, -1):
        with pytest.raises(TaskError, match=r"new\.txt"):
            engine.fork(done.trace, at)
    assert engine.fork(done.trace, 1, without_files=True).final_result == "old.txt"
    assert engine.fork(done.trace, 0).final_result == "new.txt, old.txt", "state 0 is before the first file"


KILLED = """
import os, signal, sys
from refold import Engine
import test_lost_files as lost

def die(name):
    os.kill(os.getpid(), signal.SIGKILL)

lost.Writer.tools = {**lost.Writer.tools, "die": die}
source, runs, *actions = sys.argv[1:]
module = lost.Writer(*(tuple(each.split("=")) for each in actions))
Engine(module, traces=runs).run(lost.scratch(lost.Path(source)))
"""


@pytest.mark.parametrize(
    ("actions", "is_left", "files"),
    [
        (["write=old.txt", "write=a/b.txt"], True, ["a/b.txt", "old.txt"]),
        (["remove=old.txt"], True, []),
        (["write=new.txt"], False, []),
        ([], True, None),
    ],
)
def test_a_run_that_was_killed_has_lost_files_too(
    actions: list[str], is_left: bool, files: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder that it left says which ones, if it is still there."""
    monkeypatch.setattr(Writer, "tools", {**Writer.tools, "die": lambda name: "survived"})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    argv = [str(tmp_path / "source"), str(tmp_path / "runs"), *actions, "die=now"]
    assert subprocess.run([sys.executable, "-c", KILLED, *argv], env=env).returncode == -signal.SIGKILL
    (left,) = tmp_path.glob("refold-*")
    if not is_left:
        shutil.rmtree(left)
    done = [(name, path) for name, _, path in (each.partition("=") for each in [*actions, "die=now"])]
    engine = Engine(Writer(*done), traces=tmp_path / "runs")
    (trace,) = (tmp_path / "runs").glob("*.jsonl")
    if files is not None:
        with pytest.raises(TaskError) as lost:
            engine.resume(trace)
        assert lost.value.code == "files_lost"
        assert ", ".join(files) in str(lost.value)
        assert ("unknown" in str(lost.value)) == (not files)
    assert engine.resume(trace, without_files=files is not None).waiting


def test_what_is_not_gone_is_not_told(tmp_path: Path) -> None:
    unchanged = Engine(Writer())
    waiting = unchanged.run(scratch(tmp_path / "source"))
    assert unchanged.resume(waiting.trace, "yes").final_result == "old.txt"

    host = Engine(Writer(("write", "new.txt")), workspace=tmp_path / "source")
    waiting = host.run(scratch(tmp_path / "source", "host"))
    assert host.resume(waiting.trace, "yes").final_result == "new.txt, old.txt", "a folder of the user stays"
    assert waiting.waiting


def test_a_child_run_goes_on_without_its_files_only_when_its_parent_is_told_to(tmp_path: Path) -> None:
    class Parent(Writer):
        async def decide(self, state: Pages) -> Decision:  # type: ignore[override]
            result = await run_child(Writer(("write", "new.txt")), scratch(tmp_path / "source"))
            if result.error is not None:
                raise RuntimeError(str(result.error))
            return Decision.final(str(result.final_result))

    engine = Engine(Parent(), traces=tmp_path / "runs")
    waiting = engine.run("x")
    failed = engine.resume(waiting.trace, "yes")
    assert failed.error is not None
    assert "had changed files that are gone with its scratch environment: new.txt" in str(failed.error)
    assert engine.resume(failed.trace, without_files=True).final_result == "old.txt"


def test_the_command_line_goes_on_when_told_to(tmp_path: Path) -> None:
    engine = Engine(Book(), traces=tmp_path / "runs")
    run = engine.run(scratch(tmp_path / "source"))
    argv = [str(run.trace.path), "--module", f"{__file__}:Book", "--yes"]
    refused = CliRunner().invoke(app, ["resume", *argv, "--value", '"yes"'])
    assert refused.exit_code != 0
    assert "new.txt" in str(refused.exception)
    assert CliRunner().invoke(app, ["fork", *argv]).exit_code != 0
    done = CliRunner().invoke(app, ["resume", *argv, "--value", '"yes"', "--without-files"])
    assert done.exit_code == 0, done.output
