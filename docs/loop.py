"""Draws the engine's loop for the documentation: `python docs/loop.py`.

It writes the diagram in `docs/design.md`.
"""

from pathlib import Path

from refold.cli.draw.loop_diagram import loop_diagram
from refold.cli.draw.mermaid import mermaid

PAGE = Path(__file__).parent / "design.md"
BEGIN, END = "<!-- the loop begins -->\n", "<!-- the loop ends -->\n"


def page() -> str:
    """The page, its diagram made anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n```mermaid\n{mermaid(loop_diagram())}```\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
