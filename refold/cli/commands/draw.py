"""`refold draw`: a module's loop, tools and budget as a diagram."""

import sys
from pathlib import Path
from typing import Any

from rich.text import Text

from ...engine import RuntimeBudget
from ...engine.module import module_of
from ...traces.export.files import export_file
from ..draw.mermaid import mermaid
from ..draw.module_diagram import module_diagram
from ..input.module_import import as_module, is_agent, thing_at
from ..render.output import console, say
from ..render.text import clean, size_text
from .export import STDOUT


def draw(path: str, target: str, budget: dict[str, Any], *, full: bool, force: bool) -> int:
    """Write the diagram of the module or Agent at `path`."""
    found = thing_at(path)
    if is_agent(found):
        limits = found.make_engine().budget
        module = module_of(found)
    else:
        limits, module = RuntimeBudget(), as_module(found, path)
    given = {name: getattr(limits, name) for name in RuntimeBudget.__dataclass_fields__} | budget
    text = mermaid(module_diagram(module, RuntimeBudget(**given), path, full=full))
    if target == STDOUT:
        sys.stdout.write(text)
        return 0
    data = text.encode()
    with export_file(Path(target), force=force) as file:
        file.write(data)
    say(console(), Text(f"wrote {clean(target)}, {size_text(len(data))}"))
    return 0
