"""A run goes on in the workspace where it began, unless divergences are ignored; verifying and forking need none."""

from pathlib import Path
from typing import Any

import pytest

from refold import Action, AgentModule, Decision, Engine, Observation, StateSchema, Trace
from refold.errors import DivergenceError
from refold.modules.tools import bash, read, use_sandbox, use_workspace, write

TOOLS: dict[str, Any] = {"bash": bash.to_action(), "read": read, "write": write}


class Notes(StateSchema):
    results: list[str] = []


class Worker(AgentModule[Notes]):
    """Writes a file, asks, and does what is left."""

    tools = TOOLS

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.then = Action(name, args)

    def init_state(self, task: str) -> Notes:
        return Notes()

    def decide(self, state: Notes) -> Decision:
        steps = [
            Decision.act([Action("write", {"file_path": "f", "content": "x"})]),
            Decision.wait("Go on?"),
            Decision.act([self.then]),
        ]
        done = len(state.results)
        return steps[done] if done < len(steps) else Decision.final(state.results[-1])

    def reduce(self, state: Notes, decision: Decision, observation: Observation) -> None:
        if decision.mode != "final":
            state.results.append("".join(str(each.error or each.output) for each in observation.results))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return tmp_path / "a", tmp_path / "b"


CALLS = [("write", {"file_path": "g", "content": "y"}), ("bash", {"cmd": "echo y > g", "outside": True})]


@pytest.mark.parametrize("ambient", [True, False], ids=["use_workspace", "current folder"])
@pytest.mark.parametrize(("name", "args"), CALLS, ids=["write", "bash"])
def test_a_run_resumes_where_it_worked_and_nowhere_else(
    folders: tuple[Path, Path], name: str, args: dict[str, Any], ambient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (a, b), engine = folders, Engine(Worker(name, args), traces=folders[0].parent / "runs")

    def within(folder: Path, work: Any) -> Any:
        monkeypatch.chdir(folder if not ambient else folder.parent)
        with use_sandbox("local"):
            if not ambient:
                return work()
            with use_workspace(folder):
                return work()

    waiting = within(a, lambda: engine.run("go"))
    with pytest.raises(DivergenceError, match=rf"worked in the workspace {a}, and this process has {b}\. Resume the"):
        within(b, lambda: engine.resume(waiting.run_id, True))
    assert [*b.iterdir()] == []
    done = within(a, lambda: engine.resume(waiting.run_id, {"retry": True}))
    assert done.status == "completed", "the call that was refused is asked about, as any unfinished one"
    assert (a / "g").read_text().strip() == "y"
    assert [*b.iterdir()] == []
    assert within(b, lambda: engine.verify(done.trace)) == []
    pinned = [each["data"] for each in Trace.load(done.trace.path).records if each.get("name") == "pinned"]
    assert pinned == [{"workspace": str(a)}], "it is said once"

    again = within(a, lambda: engine.run("go"))
    moved = within(b, lambda: engine.resume(again.run_id, True, on_divergence="ignore"))
    assert (b / "g").read_text().strip() == "y", "a folder may really have moved"
    assert moved.status == "completed"
    (b / "g").unlink()
    assert within(b, lambda: engine.fork(again.run_id, at=2)).status == "completed"
    assert (b / "g").exists(), "a fork is a run of its own"


class Own(Worker):
    """Works in a folder that a tool makes for itself."""

    tools = {**TOOLS}

    def __init__(self, folder: Path) -> None:
        super().__init__("own", {})
        self.folder = folder
        self.tools = {**TOOLS, "own": self.own}

    def own(self) -> str:
        """Write where no one else does."""
        with use_workspace(self.folder):
            return str(write("g", "y"))


def test_a_workspace_that_a_tool_chooses_may_be_any(folders: tuple[Path, Path]) -> None:
    a, b = folders
    module = Own(b)
    with use_workspace(a):
        waiting = Engine(module).run("go")
        assert Engine(module).resume(waiting.trace, True).status == "completed"
    assert (b / "g").read_text() == "y"
