"""Draws the engine's loop for the documentation: `python docs/loop.py`.

It writes `docs/loop.svg` and the diagram in `docs/design.md`.
"""

from pathlib import Path

from refold.cli.draw.loop_diagram import loop_diagram
from refold.cli.draw.mermaid import mermaid
from refold.cli.draw.svg import svg

DOCS = Path(__file__).parent
PAGE, PICTURE = DOCS / "design.md", DOCS / "loop.svg"
BEGIN, END = "<!-- the loop begins -->\n", "<!-- the loop ends -->\n"


def page() -> str:
    """The page, its diagram made anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n```mermaid\n{mermaid(loop_diagram())}```\n\n{END}{rest.partition(END)[2]}"


def picture() -> str:
    """The diagram as SVG, for readers whose program draws no Mermaid."""
    return svg(loop_diagram())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")
