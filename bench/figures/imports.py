"""Start-up: what an import costs, in fresh interpreters, over what it can't do without."""

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
"""What any program with a pydantic model and an event loop loads; pydantic itself is lazy, so a model is made."""
USED = """
import refold
refold.Engine
"""


def imports(sizes: Sizes) -> Iterator[Figure]:
    """`import refold` over `import pydantic` and `import anyio`; and, as both are lazy, the same once they are used."""
    programs = {"base": BASE, "facade": FACADE, "used_base": USED_BASE, "used": USED}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for program in programs.values():
        seconds(program)  # from here on bytecode is compiled and files are in the cache
    for _ in range(2 * sizes.repeats + 1):
        for name, program in programs.items():
            times[name].append(seconds(program))
    for key, title, ours, base, goal in (
        ("import.facade", "`import refold` over `import pydantic` and `import anyio`", "facade", "base", 1.5),
        ("import.used", "the same, once an Engine and a pydantic model are there", "used", "used_base", None),
    ):
        details = {"ms": spread(times[ours], 1e3), "base_ms": spread(times[base], 1e3)}
        yield Figure(key, title, median(paired(times[ours], times[base])), goal, details=details)


def seconds(program: str) -> float:
    """What a program takes in a fresh interpreter, without the interpreter's own start."""
    timed = f"import time; began = time.perf_counter()\n{program}\nprint(time.perf_counter() - began)"
    done = subprocess.run([sys.executable, "-c", timed], check=True, capture_output=True, text=True)
    return float(done.stdout)
