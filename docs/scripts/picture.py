"""Draws `docs/pictures/replay.svg` from a real run: `python docs/scripts/picture.py`.

The run is one of the Game of 24.
"""

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from refold.cli.commands.replay.pages import Pages, heading
from refold.modules.examples.game_of_24 import GameOf24
from refold.tasks import load_task

DOCS = Path(__file__).parents[1]
TASK = DOCS.parent / "tasks" / "examples" / "game_of_24.yaml"
STEPS = (7, 8, 9, 10)


def draw() -> str:
    """Return the picture: a replay's last steps, as the command prints.

    The picture loads nothing from anywhere.
    """
    pages = Pages(GameOf24().run(load_task(TASK)).trace)
    console = Console(
        file=io.StringIO(), record=True, width=92, markup=False, highlight=False, color_system="truecolor"
    )
    console.print(Text("$ refold replay runs/demo --all", "bold"))
    console.print(heading(pages.trace))
    console.print(Text("…", "dim"))
    for step in STEPS:
        console.print(pages.title(step + 1))
        for line in pages.lines(step + 1, False, ""):
            line.truncate(console.width, overflow="ellipsis")
            console.print(line)
    plain = re.sub(r"@font-face \{\{.*?\}\}|<!--.*?-->", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="The Game of 24, replayed", code_format=plain, unique_id="replay")


if __name__ == "__main__":
    (DOCS / "pictures" / "replay.svg").write_text(draw(), encoding="utf-8")
