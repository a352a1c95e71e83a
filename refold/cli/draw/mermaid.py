"""Diagrams as Mermaid, which GitHub and many editors draw."""

import re
from collections.abc import Iterator

from ..render.text import clean
from .diagram import Diagram

_SHAPES = {"hook": ("[", "]"), "world": ("[[", "]]"), "engine": ("(", ")"), "end": ("([", "])")}
_SPECIAL = re.compile(r"[^\w .,:=()/*+-]|_", re.ASCII)


def mermaid(diagram: Diagram) -> str:
    """Return a diagram as a Mermaid flowchart."""
    return "\n".join(_lines(diagram)) + "\n"


def _lines(diagram: Diagram) -> Iterator[str]:
    yield "flowchart TD"
    yield f"    accTitle: {_words(diagram.title)}"
    for row in diagram.rows:
        for node in row:
            begin, end = _SHAPES[node.kind]
            yield f'    {node.id}{begin}"{"<br/>".join(map(_escaped, node.lines))}"{end}'
    for edge in diagram.edges:
        label = f'|"{_escaped(edge.label)}"|' if edge.label else ""
        yield f"    {edge.source} -->{label} {edge.target}"


def _escaped(text: str) -> str:
    """Return text as Mermaid's entities, so that none of it is syntax."""
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", clean(text))


def _words(text: str) -> str:
    return re.sub(r"[^\w .,:-]", " ", clean(text), flags=re.ASCII)
