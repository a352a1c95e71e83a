"""The decorator `tool`."""

import sys
from collections.abc import Callable
from typing import overload

from .from_function import names_around
from .tool_class import Catch, P, R, Tool


@overload
def tool(
    func: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    catch: Catch = None,
    truncate: int | None = None,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
@overload
def tool(
    func: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    catch: Catch = None,
    truncate: int | None = None,
) -> Tool[P, R]: ...
def tool(
    func: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    catch: Catch = None,
    truncate: int | None = None,
) -> Callable[[Callable[P, R]], Tool[P, R]] | Tool[P, R]:
    """Makes a function a Tool: `@tool`, or `@tool(name=..., ...)`. Given a Tool, makes one that differs in these.

    Args:
        func: the function, sync or async.
        name: its name, if not the function's.
        description: what the model is told of it, if not the docstring.
        catch: which errors the model is told of, rather than that they end the turn: True, False, or classes. None
            stands for True. See Tool.
        truncate: how many characters of a result are kept, if not all.

    Raises ToolDefinitionError for a function that no JSON arguments could be passed to.
    """
    names = names_around(sys._getframe(1))

    def make(fn: Callable[P, R]) -> Tool[P, R]:
        if isinstance(fn, Tool):
            return fn.with_(name=name, description=description, catch=catch, truncate=truncate)
        return Tool.from_callable(fn, name=name, description=description, catch=catch, truncate=truncate, names=names)

    return make(func) if func is not None else make
