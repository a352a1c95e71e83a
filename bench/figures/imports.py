"""Start-up: the time of an import, over that of its dependencies."""

import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from ..figure import Figure, Sizes, paired, spread

BASE = "import pydantic, anyio"
FACADE = "import refold"
USED_BASE = """
import pydantic, anyio, anyio.abc, anyio.to_thread, orjson
class M(pydantic.BaseModel): x: int
"""
"""The imports of any program with a pydantic model and an event loop; a model is made because pydantic is lazy."""
USED = """
import refold
refold.Engine
"""


def imports(sizes: Sizes) -> Iterator[Figure]:
    """Yield the time of `import refold` over its dependencies, lazy and used."""
    programs = {"base": BASE, "facade": FACADE, "used_base": USED_BASE, "used": USED}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for program in programs.values():
        seconds(program)  # compiles bytecode and fills the file cache
    for _ in range(2 * sizes.repeats - 1):
        for name, program in programs.items():
            times[name].append(seconds(program))
    for key, title, ours, base, goal in (
        ("import.facade", "`import refold` over `import pydantic` and `import anyio`", "facade", "base", 1.5),
        ("import.used", "the same, with an Engine and a pydantic model made", "used", "used_base", None),
    ):
        details = {"ms": spread(times[ours], 1e3), "base_ms": spread(times[base], 1e3)}
        yield Figure(key, title, median(paired(times[ours], times[base])), goal, details=details)


def seconds(program: str) -> float:
    """Return a program's time in a fresh interpreter, without interpreter start."""
    timed = f"import time; began = time.perf_counter()\n{program}\nprint(time.perf_counter() - began)"
    done = subprocess.run([sys.executable, "-c", timed], check=True, capture_output=True, text=True)
    return float(done.stdout)
