"""The check of a tool call's arguments against the tool's signature."""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any, get_type_hints
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter, ValidationError

from ...errors import ArgumentError
from ..state.frozen import thaw
from ..state.shapes.containers import first_problem


class Signature:
    """The parameters of a tool, which take JSON values by name.

    Raises TypeError for a positional-only parameter.
    """

    def __init__(self, name: str, fn: Callable[..., Any]) -> None:
        self.name = name
        self._validators: dict[str, Callable[[Any], Any] | None] = {}
        self._required: list[str] = []
        self._open = False
        hints = _hints(fn)
        for parameter in inspect.signature(fn).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                self._open = True
            elif parameter.kind is parameter.POSITIONAL_ONLY:
                raise TypeError(
                    f"tool {name!r}: parameter {parameter.name!r} is positional-only; tools are called by name"
                )
            elif parameter.kind is not parameter.VAR_POSITIONAL:
                declared = hints.get(parameter.name, Any)
                adapter = None if declared is Any else TypeAdapter(declared)
                self._validators[parameter.name] = adapter and adapter.validator.validate_python
                if parameter.default is parameter.empty:
                    self._required.append(parameter.name)

    def check(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, validated and converted; raises ArgumentError."""
        taken: dict[str, Any] = {}
        for name, value in args.items():
            if name not in self._validators:
                if not self._open:
                    raise ArgumentError(self._unexpected(name), name)
                taken[name] = thaw(value)
                continue
            validate = self._validators[name]
            try:
                taken[name] = thaw(value) if validate is None else validate(value)
            except ValidationError as error:
                shown = repr(value)
                shown = shown if len(shown) <= 80 else shown[:77] + "..."
                raise ArgumentError(
                    f"argument {name!r} of {self.name}: {first_problem(error)} (got {shown})", name
                ) from None
        for name in self._required:
            if name not in taken:
                raise ArgumentError(f"argument {name!r} of {self.name} is missing", name)
        return taken

    def _unexpected(self, name: str) -> str:
        near = get_close_matches(name, self._validators, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        known = ", ".join(self._validators) or "none"
        return f"{self.name} has no argument {name!r}; its arguments are {known}{hint}"


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    while isinstance(fn, partial):
        fn = fn.func
    target = fn if inspect.isroutine(fn) else type(fn).__call__
    return get_type_hints(target, include_extras=True)


_signatures: WeakKeyDictionary[Any, Signature] = WeakKeyDictionary()


def signature_of(name: str, fn: Callable[..., Any]) -> Signature:
    """Return the signature of a tool; signatures of plain functions are cached."""
    if not inspect.isfunction(fn):
        return Signature(name, fn)
    known = _signatures.get(fn)
    if known is None or known.name != name:
        known = _signatures[fn] = Signature(name, fn)
    return known
