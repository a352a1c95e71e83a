"""The settings of a module in a run's state: forks adopt them."""

from typing import Any

import orjson

from ...traces import Trace
from ..effects.journal.redacted_match import fits
from ..effects.request_digest import part_at
from ..module import Module
from ..state.model import dump


def configuration(module: Module[Any]) -> dict[str, Any]:
    """Return the module's own settings in JSON form, by JSON Pointer."""
    settings: dict[str, Any] = orjson.loads(dump(dict(module.configuration())))
    return settings


def changed_configuration(module: Module[Any], trace: Trace) -> dict[str, Any]:
    """Return the module's settings that differ from those of a trace's module.

    The trace's first state has these. If a fork's first state has another value, because the fork was edited or a hook
    had replaced the value, the fork's header has the setting.
    """
    apart = (trace.header.get("parent") or {}).get("configuration") or {}
    first = trace.first_state or {}
    own = configuration(module).items()
    return {path: now for path, now in own if not fits(apart[path] if path in apart else part_at(first, path), now)}
