"""Copies of a parent's hooks for a sub-agent, with separate state."""

from collections import deque
from collections.abc import Callable
from copy import copy, deepcopy
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

from ..hooks.hook import CountingHook, Hook

_CONTAINERS = (list, dict, set, deque, bytearray)


def hooks_apart(hooks: list[Hook]) -> list[Hook]:
    """Return copies of hooks with their own counts and containers.

    Numbers, texts and containers are copied if they are in a function's closure, a bound object or a callable object.
    Other objects (a client, a lock, a logger) are shared, and so are globals.
    """
    return [_apart(hook) for hook in hooks]


def _apart(hook: Hook) -> Hook:
    if isinstance(hook, CountingHook):
        return hook  # its memory is in each run's state
    made: Hook = type(hook).__new__(type(hook))  # `copy` cannot copy a property
    vars(made).update({name: _data_apart(held) for name, held in vars(hook).items()})
    made.func = _function_apart(hook.func)
    return made


def _function_apart(func: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(func, partial):
        return partial(_function_apart(func.func), *map(_copy_of_object, func.args), **func.keywords)
    if isinstance(func, MethodType):
        return MethodType(func.__func__, _copy_of_object(func.__self__))
    if not isinstance(func, FunctionType):
        return func if isinstance(func, type) else _object_apart(func)
    if func.__closure__ is None:
        return func
    cells = tuple(map(_cell_apart, func.__closure__))
    made = FunctionType(func.__code__, func.__globals__, func.__name__, func.__defaults__, cells)
    made.__kwdefaults__ = func.__kwdefaults__
    made.__dict__.update(func.__dict__)
    made.__doc__, made.__qualname__, made.__module__ = func.__doc__, func.__qualname__, func.__module__
    return made


def _cell_apart(cell: CellType) -> CellType:
    try:
        return CellType(_data_apart(cell.cell_contents))
    except ValueError:  # the cell is still empty
        return CellType()


def _copy_of_object(value: Any) -> Any:
    """Return a copy of the object to which a hook is bound."""
    return _object_apart(value) if not isinstance(value, type) else value


def _object_apart(value: Any) -> Any:
    if not hasattr(value, "__dict__"):
        return _data_apart(value)
    try:
        made = copy(value)
    except Exception:  # noqa: BLE001 - what cannot be copied is shared
        return value
    for name, held in vars(made).copy().items():
        if isinstance(held, _CONTAINERS):
            vars(made)[name] = _data_apart(held)
    return made


def _data_apart(value: Any) -> Any:
    if not isinstance(value, _CONTAINERS):
        return value
    try:
        return deepcopy(value)
    except Exception:  # noqa: BLE001 - an item cannot be copied: the items are shared, the container is not
        return copy(value)
