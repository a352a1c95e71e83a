"""A deterministic state-machine engine for LLM agents: a run is a fold, so it can be folded again.

Every public name is importable from here; each is loaded on its first use, so that `import refold` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine import *  # noqa: F403
    from .errors import RefoldError as RefoldError
    from .tasks import *  # noqa: F403
    from .traces import *  # noqa: F403

__version__ = "0.1.0"

_ROOMS = ("errors", "engine", "tasks", "traces")


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for room in _ROOMS:
            module = import_module(f".{room}", __name__)
            if name in getattr(module, "__all__", ("RefoldError",)) and hasattr(module, name):
                found = globals()[name] = getattr(module, name)
                return found
    raise AttributeError(f"module 'refold' has no attribute {name!r}")


def __dir__() -> list[str]:
    names = {n for room in _ROOMS for n in getattr(import_module(f".{room}", __name__), "__all__", ("RefoldError",))}
    return sorted(names | {"__version__"})
