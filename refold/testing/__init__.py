"""A kit for testing modules: replayed runs, generated states, a clock.

Each name is imported on first use, so that only `states` needs hypothesis, and only `assert_replays` and
`fold_with_jsonpatch` need jsonpatch (`pip install "refold[testing]"`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .clock import FakeClock
    from .folding import Folded, fold_with_jsonpatch
    from .golden import TraceTestError, check_golden
    from .replays import assert_replays
    from .resuming import check_resume
    from .script import Scripted, scripted
    from .strategies import states

_ROOMS = {
    "FakeClock": "clock",
    "Folded": "folding",
    "Scripted": "script",
    "TraceTestError": "golden",
    "assert_replays": "replays",
    "check_golden": "golden",
    "check_resume": "resuming",
    "fold_with_jsonpatch": "folding",
    "scripted": "script",
    "states": "strategies",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'refold.testing' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted(_ROOMS)


__all__ = [
    "FakeClock",
    "Folded",
    "Scripted",
    "TraceTestError",
    "assert_replays",
    "check_golden",
    "check_resume",
    "fold_with_jsonpatch",
    "scripted",
    "states",
]
