"""A kit for testing modules: replayed runs, generated states, a clock.

Each name is imported on first use, so that only `states` needs hypothesis, and only `assert_replays` and
`fold_with_jsonpatch` need jsonpatch (`pip install "refold[testing]"`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .clock import FakeClock
    from .golden import TraceTestError, check_golden
    from .other_libraries import Folded, fold_with_jsonpatch
    from .other_process import HashSeedWarning
    from .replays import assert_replays
    from .resume_contract import check_resume
    from .script import Scripted, scripted
    from .store_suite import StoreSuite
    from .strategies import states

_ROOMS = {
    "FakeClock": "clock",
    "Folded": "other_libraries",
    "HashSeedWarning": "other_process",
    "Scripted": "script",
    "StoreSuite": "store_suite",
    "TraceTestError": "golden",
    "assert_replays": "replays",
    "check_golden": "golden",
    "check_resume": "resume_contract",
    "fold_with_jsonpatch": "other_libraries",
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
    "HashSeedWarning",
    "Scripted",
    "StoreSuite",
    "TraceTestError",
    "assert_replays",
    "check_golden",
    "check_resume",
    "fold_with_jsonpatch",
    "scripted",
    "states",
]
