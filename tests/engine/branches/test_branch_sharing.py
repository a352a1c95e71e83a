"""Children share what they do not change: in memory, and in their traces."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from toys.menu import dish, eat
from toys.tree import Taking, assert_family_holds, children, explore

from refold import (
    AgentModule,
    Decision,
    Engine,
    Observation,
    StateSchema,
)
from refold.engine import Branch, Node


class Library(StateSchema):
    shelves: dict[str, list[str]] = {}
    lent: list[str] = []
    read: int = 0


class Lends(AgentModule[Library]):
    tools = {"dish": dish}

    def init_state(self, task: str) -> Library:
        return Library(shelves={f"shelf {k}": [f"book {k}.{n}" for n in range(50)] for k in range(50)})

    def decide(self, state: Library) -> Decision:
        return Decision.branch([eat(str(n)) for n in range(8)]) if state.read < 2 else Decision.final("home")

    def reduce(self, state: Library, decision: Decision, observation: Observation) -> None:
        if observation.results:
            state.shelves[f"shelf {observation.results[0].output}"].pop()
            state.read += 1


def test_children_share_what_they_do_not_change_and_write_only_what_they_do(tmp_path: Path) -> None:
    seen: list[tuple[Node, list[Node]]] = []

    async def two_levels(branch: Branch) -> Any:
        first = await branch.grow(branch.root)
        second = await branch.grow(*first)
        seen.append((branch.root, [*first, *second]))
        return second[-1]

    result = explore(Taking(two_levels), Lends(), traces=tmp_path)
    assert result.error is None
    root, nodes = seen[0]
    assert len(nodes) == 72
    for node in nodes:
        changed = [name for name in root.state.shelves if node.state.shelves[name] is not root.state.shelves[name]]
        assert len(changed) <= node.depth
        assert node.state.lent is root.state.lent
    assert nodes[0].state.shelves["shelf 1"] is nodes[-1].state.shelves["shelf 1"]
    assert nodes[8].parent is nodes[0]
    for child in children(result.trace):
        assert [record.kind for record in child.records].count("snapshot") == 1
        assert "state" not in next(record for record in child.records if record.kind == "snapshot")


class DatedLibrary(Library):
    when: date | None = None


class DatedLends(AgentModule[DatedLibrary]):
    """The same, with a date, which is text in a patch."""

    tools = Lends.tools

    def init_state(self, task: str) -> DatedLibrary:
        return DatedLibrary(shelves=Lends().init_state(task).to_dict()["shelves"])

    def decide(self, state: DatedLibrary) -> Decision:
        return Lends().decide(state)

    def reduce(self, state: DatedLibrary, decision: Decision, observation: Observation) -> None:
        Lends().reduce(state, decision, observation)
        if observation.results:
            state.when = date(2026, 1, 1 + int(observation.results[0].output))


@pytest.mark.parametrize("dated", [False, True])
def test_children_that_had_ended_are_taken_up_as_they_were(dated: bool, tmp_path: Path) -> None:
    seen: list[tuple[Node, list[Node]]] = []

    async def two_levels(branch: Branch) -> Any:
        first = await branch.grow(branch.root)
        second = await branch.grow(*first[:2])
        seen.append((branch.root, [*first, *second]))
        return second[-1]

    module: AgentModule[Any] = DatedLends() if dated else Lends()
    engine = Engine(module, branch=Taking(two_levels), traces=tmp_path)
    result = engine.run("t")
    path = result.trace.path
    assert path is not None
    chosen = next(r.seq for r in result.trace.records if r.kind == "branch" and "chosen" in r)
    path.write_bytes(b"".join(r.raw + b"\n" for r in result.trace.records[:chosen]))
    written = {child.path: child.data for child in children(result.trace)}
    again = engine.resume(path)
    assert_family_holds(engine, again)
    assert again.state == result.state
    assert {child.path: child.data for child in children(again.trace)} == written
    (_, before), (_, after) = seen
    assert [node.state for node in before] == [node.state for node in after]
