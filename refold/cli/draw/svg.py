"""Diagrams as SVG for light and dark themes, without scripts or requests."""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from rich.cells import cell_len

from ..render.text import clean
from .diagram import Diagram, Edge, Node

_CHAR, _SMALL, _LEADING = 7.3, 6.7, 17
"""The width of a character, of one in a label, and the height of a line, in pixels: monospace of 12 and 11 px."""
_PAD, _GAP_X, _GAP_Y, _MARGIN = 12, 48, 50, 24
_STYLE = """
:root{--ink:#1b1c1f;--ink2:#63676f;--line:#85878c;--bg:#fbfbfa;--hook:#e6effc;--world:#f6ecd9;--engine:#ffffff;--end:#e2f4e8}
@media(prefers-color-scheme:dark){:root{--ink:#e8e9eb;--ink2:#989ca6;--line:#787c86;--bg:#16171a;--hook:#1b2b47;
--world:#3a2f18;--engine:#1b1c20;--end:#15301f}}
text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:var(--ink)}
.t{font-weight:600}.l{fill:var(--ink2);font-size:11px;paint-order:stroke;stroke:var(--bg);stroke-width:4px}
rect{stroke:var(--line)}path{fill:none;stroke:var(--line)}marker path{fill:var(--line);stroke:none}
"""


@dataclass(frozen=True, slots=True)
class _Box:
    node: Node
    row: int
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def center(self) -> float:
        return self.y + self.height / 2

    @property
    def right(self) -> float:
        return self.x + self.width

    def near(self, x: float) -> float:
        """Return the place on the box's edge that is nearest to `x`."""
        return min(max(x, self.x + 20), self.right - 20)


def svg(diagram: Diagram) -> str:
    """Return a diagram as a standalone SVG document."""
    drawing = _Drawing(diagram)
    arrows = [drawing.arrow(edge) for edge in diagram.edges]
    boxes = [part for box in drawing.boxes.values() for part in _drawn(box)]
    width, height = drawing.width, drawing.height
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img">',
        f"<title>{_text(diagram.title)}</title><style>{_STYLE}</style>",
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" style="fill:var(--bg);stroke:none"/>',
    ]
    return "\n".join([*head, *arrows, *boxes, *drawing.labels, "</svg>"]) + "\n"


class _Drawing:
    """The layout: rows of boxes in the middle, lanes on both sides.

    Long arrows run down in the lanes on the left and up in the lanes on the right.
    """

    def __init__(self, diagram: Diagram) -> None:
        rows = {node.id: number for number, row in enumerate(diagram.rows) for node in row}
        ways = {edge: rows[edge.target] - rows[edge.source] for edge in diagram.edges}
        down = [edge for edge, way in ways.items() if way > 1]
        up = [edge for edge, way in ways.items() if way < 0]
        beside = max((_wide(e.label) for e, way in ways.items() if not way and e.source != e.target), default=0.0)
        gap = max(_GAP_X, beside + 20)
        left = _MARGIN + sum(_lane(edge) for edge in down)
        self.labels: list[str] = []
        self.boxes, inner, self.height = _placed(diagram, left, gap)
        self._down, self._up = left, inner
        self.width = inner + sum(_lane(edge) for edge in up) + _MARGIN

    def arrow(self, edge: Edge) -> str:
        """Return the arrow, and add its label to the labels."""
        source, target = self.boxes[edge.source], self.boxes[edge.target]
        if source is target:
            way = self._loop(edge, source)
        elif target.row < source.row:
            way = self._back(edge, source, target)
        elif target.row == source.row:
            way = self._across(edge, source, target)
        elif target.row == source.row + 1:
            way = self._ahead(edge, source, target)
        else:
            way = self._around(edge, source, target)
        return f'<path d="{way}" marker-end="url(#a)"/>'

    def _loop(self, edge: Edge, box: _Box) -> str:
        x, y = box.right - 40, box.y + box.height
        self._label(edge, x + 28, y + 15, "start")
        return f"M{x:.1f} {y:.1f}c-12 22 32 22 20 0"

    def _back(self, edge: Edge, source: _Box, target: _Box) -> str:
        lane, y1, y2 = self._up + 12, source.center, target.center
        self._up += _lane(edge)
        self._label(edge, lane + 6, (y1 + y2) / 2, "start")
        return (
            f"M{source.right:.1f} {y1:.1f}H{lane - 8:.1f}Q{lane:.1f} {y1:.1f} {lane:.1f} {y1 - 8:.1f}"
            f"V{y2 + 8:.1f}Q{lane:.1f} {y2:.1f} {lane - 8:.1f} {y2:.1f}H{target.right:.1f}"
        )

    def _across(self, edge: Edge, source: _Box, target: _Box) -> str:
        x1, x2 = (source.right, target.x) if target.x > source.x else (source.x, target.right)
        y = source.y + min(source.height, target.height) / 2
        self._label(edge, (x1 + x2) / 2, y - 6)
        return f"M{x1:.1f} {y:.1f}H{x2:.1f}"

    def _ahead(self, edge: Edge, source: _Box, target: _Box) -> str:
        x1, x2 = source.near(target.middle), target.near(source.middle)
        y1, y2 = source.y + source.height, target.y
        middle = (y1 + y2) / 2
        self._label(edge, (x1 + x2) / 2, middle + 4)
        return f"M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"

    def _around(self, edge: Edge, source: _Box, target: _Box) -> str:
        """Return a path from below the box past the rows between."""
        self._down -= _lane(edge)
        lane, x, y1, y2 = self._down, source.x + 14, source.y + source.height, target.center
        turn = y1 + 12
        self._label(edge, lane + 6, y2 - 6, "start")
        return (
            f"M{x:.1f} {y1:.1f}V{turn - 6:.1f}Q{x:.1f} {turn:.1f} {x - 6:.1f} {turn:.1f}H{lane + 8:.1f}"
            f"Q{lane:.1f} {turn:.1f} {lane:.1f} {turn + 8:.1f}V{y2 - 8:.1f}"
            f"Q{lane:.1f} {y2:.1f} {lane + 8:.1f} {y2:.1f}H{target.x:.1f}"
        )

    def _label(self, edge: Edge, x: float, y: float, anchor: str = "middle") -> None:
        if edge.label:
            text = _text(edge.label)
            self.labels.append(f'<text class="l" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>')


def _placed(diagram: Diagram, left: float, gap: float) -> tuple[dict[str, _Box], float, float]:
    """Return the boxes, their right end, and their total height."""
    sizes = {
        node.id: (
            max((cell_len(line) for line in node.lines), default=1) * _CHAR + 2 * _PAD,
            len(node.lines) * _LEADING + 2 * _PAD - 4,
        )
        for row in diagram.rows
        for node in row
    }
    widths = [sum(sizes[node.id][0] for node in row) + gap * (len(row) - 1) for row in diagram.rows]
    full, y = max(widths, default=0), float(_MARGIN)
    boxes: dict[str, _Box] = {}
    for number, row in enumerate(diagram.rows):
        x = left + (full - widths[number]) / 2
        for node in row:
            width, height = sizes[node.id]
            boxes[node.id] = _Box(node, number, x, y, width, height)
            x += width + gap
        y += max(sizes[node.id][1] for node in row) + _GAP_Y
    return boxes, left + full, y - _GAP_Y + _MARGIN


def _drawn(box: _Box) -> Iterator[str]:
    radius = 16 if box.node.kind == "end" else 4
    yield (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}" '
        f'style="fill:var(--{box.node.kind})"/>'
    )
    for number, line in enumerate(box.node.lines):
        y = box.y + _PAD + 9 + number * _LEADING
        title = "" if number else ' class="t"'
        yield f'<text x="{box.x + _PAD:.1f}" y="{y:.1f}"{title}>{_text(line)}</text>'


def _lane(edge: Edge) -> float:
    return _wide(edge.label) + 24


def _wide(label: str) -> float:
    return cell_len(label) * _SMALL


def _text(text: str) -> str:
    return escape(clean(text))
