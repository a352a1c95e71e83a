"""What a live run, its runner, calls and waits hold is set by their own classes alone."""

import ast
from collections.abc import Iterator

from places import ROOT

ENGINE = ROOT / "engine"
OWNED = {"run": "LiveRun", "live": "LiveRun", "runner": "Runner", "call": "Call", "waits": "Waits"}
"""The names under which the engine holds these objects, and their classes."""


def set_from_outside(node: ast.AST, inside: str = "") -> Iterator[str]:
    """Yield the assignments to an attribute of an owned object that stand outside its class."""
    if isinstance(node, ast.ClassDef):
        inside = node.name
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        if not isinstance(target, ast.Attribute):
            continue
        holder = target.value
        name = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
        owner = OWNED.get(name.lstrip("_"))
        if owner is not None and owner != inside:
            yield ast.unparse(node)
    for child in ast.iter_child_nodes(node):
        yield from set_from_outside(child, inside)


def test_nothing_outside_its_class_assigns_to_a_run_runner_call_or_waits() -> None:
    found = {
        str(path.relative_to(ENGINE)): [*set_from_outside(ast.parse(path.read_text()))] for path in ENGINE.rglob("*.py")
    }
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_search_finds_such_assignments() -> None:
    code = "class Call:\n    def a(self, call):\n        call.x = 1\n"
    code += "def b(self, run):\n    run.y = 2\n    self.waits.z += 3\n"
    assert [*set_from_outside(ast.parse(code))] == ["run.y = 2", "self.waits.z += 3"]
