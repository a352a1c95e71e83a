"""No two files need each other: not at run time, not for a type, and not inside a function."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from places import ROOT
from statements import statements

ROOMS = {"refold": "refold", **{name: f"refold.{name}" for name in ("engine", "modules", "traces", "tasks")}}


def files() -> dict[str, Path]:
    """The project's files by the names under which they are imported."""
    found = {}
    for folder, package in ROOMS.items():
        for path in (ROOT / folder).rglob("*.py"):
            inside = path.relative_to(ROOT / folder)
            if not (ROOT / folder / inside.parts[0]).is_symlink():
                parts = inside.parent.parts if path.name == "__init__.py" else inside.with_suffix("").parts
                stub = path.with_suffix(".pyi")  # the names of a package that loads them on first use
                found[".".join((package, *parts))] = stub if stub.exists() else path
    return found


def imported(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The project's files that a file imports, wherever in it the import stands."""
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom):
            parts = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
            above = parts[: len(parts) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for each in node.names:
                whole = f"{base}.{each.name}"
                if found := next((place for place in (whole, base) if place in known), None):
                    yield found


def test_no_circle_of_imports_anywhere() -> None:
    known = files()
    graph = {name: {each for each in imported(name, path, known) if each != name} for name, path in known.items()}
    assert len(graph) > 700
    assert "refold.traces.stores.folder.store" in graph["refold.traces.stores.store_url"]  # an import inside a function
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the files of a circle
