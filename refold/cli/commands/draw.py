"""`refold draw`: a module's loop, tools and budget as a diagram."""

import sys
from pathlib import Path
from typing import Any

from rich.text import Text

from ...engine import RuntimeBudget
from ...engine.module import module_of
from ...traces.export.files import export_file
from ..draw.diagram import Diagram
from ..draw.mermaid import mermaid
from ..draw.module_diagram import module_diagram
from ..draw.svg import svg
from ..errors import InputError
from ..input.module_import import as_module, is_agent, thing_at
from ..render.output import console, say
from ..render.text import clean, size_text
from .export import STDOUT


def draw(path: str, targets: dict[str, str | None], budget: dict[str, Any], *, full: bool, force: bool) -> int:
    """Draw the module or Agent at `path`.

    The diagram is written as Mermaid on stdout, or to the named files.
    """
    found = thing_at(path)
    if is_agent(found):
        limits = found.make_engine().budget
        module = module_of(found)
    else:
        limits, module = RuntimeBudget(), as_module(found, path)
    given = {name: getattr(limits, name) for name in RuntimeBudget.__dataclass_fields__} | budget
    diagram = module_diagram(module, RuntimeBudget(**given), path, full=full)
    wanted = {name: target for name, target in targets.items() if target is not None} or {"mermaid": STDOUT}
    if list(wanted.values()).count(STDOUT) > 1:
        raise InputError("only one format can be written to stdout; name a file for the other")
    for name, target in wanted.items():
        _write(diagram, name, target, force=force, quiet=STDOUT in wanted.values())
    return 0


def _write(diagram: Diagram, name: str, target: str, *, force: bool, quiet: bool) -> None:
    text = mermaid(diagram) if name == "mermaid" else svg(diagram)
    if target == STDOUT:
        sys.stdout.write(text)
        return
    data = text.encode()
    with export_file(Path(target), force=force) as file:
        file.write(data)
    if not quiet:
        say(console(), Text(f"wrote {clean(target)}, {size_text(len(data))}"))
