"""The history of a path: its own changes, whatever its siblings do."""

from pathlib import Path

import pytest

from refold import Action, AgentModule, Decision, Engine, Observation, StateSchema
from refold.traces.index.database import Database
from refold.traces.index.folder import Folder
from refold.view.pages.history import history


class Shelf(StateSchema):
    books: dict[str, int] = {}


class Librarian(AgentModule[Shelf]):
    """Writes `a`, then `a` and `b` in one step."""

    tools = {"look": lambda: 1}

    def init_state(self, task: str) -> Shelf:
        return Shelf()

    def decide(self, state: Shelf) -> Decision:
        return Decision.final("done") if state.current_step == 2 else Decision.act(Action("look"))

    def reduce(self, state: Shelf, decision: Decision, observation: Observation) -> None:
        if state.current_step < 2:
            state.books["a"] = state.current_step
        if state.current_step == 1:
            state.books["b"] = 9


@pytest.mark.parametrize("path", ["/books/a", "/books/b", "/books", "/books/*", "/books/**"])
def test_a_history_is_the_blame_of_its_path(tmp_path: Path, path: str) -> None:
    result = Engine(Librarian(), traces=tmp_path).run("shelve")
    folder = Folder(tmp_path, None, Database(None))
    folder.scan()
    (name,) = folder.rows
    found = history(folder.open(name), path, 0)
    told = [change.step for change in result.trace.blame(path)]
    assert [entry["k"] for entry in found["entries"]] == told
    assert told
    folder.close()
