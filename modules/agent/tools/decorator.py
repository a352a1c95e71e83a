"""The decorator `tool`."""

import sys
from collections.abc import Callable
from typing import overload

from .function_names import names_around
from .tool_class import Approve, Catch, P, R, Tool


@overload
def tool(
    func: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    catch: Catch = None,
    truncate: int | None = None,
    approve: Approve | None = None,
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
    approve: Approve | None = None,
) -> Tool[P, R]: ...
def tool(
    func: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    catch: Catch = None,
    truncate: int | None = None,
    approve: Approve | None = None,
) -> Callable[[Callable[P, R]], Tool[P, R]] | Tool[P, R]:
    """Make a Tool from a function: `@tool`, or `@tool(name=..., ...)`.

    From a Tool, makes a copy with these settings.

    Args:
        func: the function, sync or async.
        name: the tool's name; by default the function's.
        description: the description for the model; by default the docstring.
        catch: the errors that the model reads and that do not end the turn: True, False, or classes. None means True.
            See Tool.
        truncate: the largest number of characters of a result; by default all are kept.
        approve: whether a person must approve a call: True, or a function of the arguments and the run's state that
            returns a bool or the reason.

    Raises ToolDefinitionError for a function that JSON arguments cannot be passed to.
    """
    names = names_around(sys._getframe(1))

    def make(fn: Callable[P, R]) -> Tool[P, R]:
        if isinstance(fn, Tool):
            return fn.with_(name=name, description=description, catch=catch, truncate=truncate, approve=approve)
        made = Tool.from_callable(fn, name=name, description=description, catch=catch, truncate=truncate, names=names)
        if approve is not None:
            made.approve = approve
        return made

    return make(func) if func is not None else make
