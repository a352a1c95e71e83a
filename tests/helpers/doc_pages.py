"""The blocks of code in the documents: Python, the files that they name, and commands with their output."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

from places import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r'^```(python|console)(?: title="([^"]+)")?(?: hl_lines="[^"]+")?\n(.*?)^```$', re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A block of a page: Python, perhaps of a file, or a terminal's text."""

    language: str
    file: str | None
    text: str


class Command(NamedTuple):
    """A command that a page shows, and the lines below it."""

    line: str
    shown: list[str]


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in order."""
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [Block(language, file or None, text) for language, file, text in found]


def code(page: Path) -> list[str]:
    """Return the page's Python that runs as one module; what belongs to a file of its own does not."""
    return [block.text for block in blocks(page) if block.language == "python" and block.file is None]


def commands(block: Block) -> list[Command]:
    """Return the commands of a terminal's text."""
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], []))
        else:
            found[-1].shown.append(line)
    return found


def written(text: str, block: str) -> str:
    """Return a file with a block of the page: a definition replaces the file's own one of that name.

    A new definition comes before the next one that replaces another. A block that imports is the whole file.
    """
    if not text or block.startswith(("import ", "from ")):
        return block
    old = {name: node for node in ast.parse(text).body for name in _defined(node)}
    lines, new = text.splitlines(keepends=True), block.splitlines(keepends=True)
    parts, start = [], 0
    for node in ast.parse(block).body:
        if known := [old[name] for name in _defined(node) if name in old]:
            parts.append((known[0], "".join(new[start : node.end_lineno]).lstrip("\n")))
            start = node.end_lineno or 0
    for node, part in sorted(parts, key=lambda each: -each[0].lineno):
        lines[_first_line(node) - 1 : node.end_lineno] = [part]
    return "".join(lines)


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    return (
        [target.id for target in node.targets if isinstance(target, ast.Name)] if isinstance(node, ast.Assign) else []
    )


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def files(page: Path) -> dict[str, str]:
    """Return the files that a page has its reader write, as they are in the end."""
    found: dict[str, str] = {}
    for block in blocks(page):
        if block.file is not None and block.language == "python":
            found[block.file] = written(found.get(block.file, ""), block.text)
    return found
