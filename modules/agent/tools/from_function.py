"""What a tool takes from the function that it is made of: a name, the names around it, and what rules it out."""

import inspect
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from .docstrings import target_of
from .schema import ToolDefinitionError


def is_async(fn: Any) -> bool:
    """Whether calling `fn` gives something to await, as far as its definition says."""
    if fn is None:
        return False
    behind = target_of(fn)
    return inspect.iscoroutinefunction(behind) or inspect.iscoroutinefunction(inspect.unwrap(behind))


def name_of(fn: Callable[..., Any]) -> str:
    """The name of a function, or of the class of an object that can be called.

    Raises ToolDefinitionError for what cannot be called, has no name, or gives no result that could be told.
    """
    behind: Any = fn
    while isinstance(behind, partial):
        behind = behind.func
    name = str(getattr(behind, "__name__", type(behind).__name__))
    if not callable(behind):
        raise ToolDefinitionError(repr(fn), f"a tool is made from a function, not from a {type(fn).__name__}")
    if name == "<lambda>":
        raise ToolDefinitionError(name, "a lambda has no name; give one with name=")
    return name


def refuse_generators(fn: Callable[..., Any], name: str) -> None:
    """Raises ToolDefinitionError for an async generator function."""
    if callable(fn) and inspect.isasyncgenfunction(target_of(fn)):
        raise ToolDefinitionError(name, "an async generator gives no result; return a list instead")


def names_around(frame: FrameType | None) -> dict[str, Any]:
    """The local names of a frame, which annotations may use; of a class body also those around the class.

    `__name__` is the frame's module: functions of another know nothing of these names.
    """
    if frame is None:
        return {}
    names = {**frame.f_locals, "__name__": frame.f_globals.get("__name__")}
    while frame is not None and "__qualname__" in frame.f_locals and "__module__" in frame.f_locals:
        frame = frame.f_back
        names = names if frame is None else {**frame.f_locals, **names}
    return names
