"""Conditions: what must hold of an event before a hook is called; combined by `&`, `|` and `~`."""

import inspect
from collections.abc import Callable
from typing import Any

from .events.metrics import MetricSeries


class Condition:
    """A function of an event that says whether something holds; sync or async, and quick."""

    def __init__(self, func: Callable[[Any], Any], *, name: str | None = None) -> None:
        if not callable(func):
            raise TypeError(f"a condition is a function of an event, got {type(func).__name__}")
        self.func = func
        self.name = name or str(getattr(func, "__name__", type(func).__name__))

    async def evaluate(self, event: Any) -> bool:
        """Whether it holds of this event."""
        found = self.func(event)
        return bool(await found if inspect.isawaitable(found) else found)

    def __call__(self, event: Any) -> Any:
        """What the function gives, as it is."""
        return self.func(event)

    def __and__(self, other: "Condition | Callable[[Any], Any]") -> "Condition":
        return and_(self, other)

    def __or__(self, other: "Condition | Callable[[Any], Any]") -> "Condition":
        return or_(self, other)

    def __invert__(self) -> "Condition":
        return not_(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class ScoringCondition(Condition):
    """A condition on a number: `func` gives it, the event keeps it under `name`, and `holds` judges it."""

    def __init__(
        self, func: Callable[[Any], Any], holds: Callable[[float], bool] = bool, *, name: str | None = None
    ) -> None:
        super().__init__(func, name=name)
        self.holds = holds

    async def evaluate(self, event: Any) -> bool:
        """Whether the event's number will do; the number is kept in the event's metrics."""
        found = self.func(event)
        number = float(await found if inspect.isawaitable(found) else found)
        event.metrics.setdefault(self.name, MetricSeries()).append(number)
        return self.holds(number)


class _Adapted(Condition):
    """Something else that has an `evaluate`."""

    def __init__(self, condition: Any) -> None:
        super().__init__(condition.evaluate, name=str(getattr(condition, "name", type(condition).__name__)))


def as_condition(given: Any) -> Condition:
    """A condition from a condition, a function, or an object with `evaluate(event)`; raises TypeError for others."""
    if isinstance(given, Condition):
        return given
    return _Adapted(given) if callable(getattr(given, "evaluate", None)) else Condition(given)


def condition(func: Callable[[Any], Any]) -> Condition:
    """Makes a condition of a function."""
    return Condition(func)


def and_(*conditions: "Condition | Callable[[Any], Any]") -> Condition:
    """Holds where all do; they are asked in order, up to the first that does not."""
    several = [as_condition(one) for one in conditions]

    async def all_hold(event: Any) -> bool:
        for one in several:
            if not await one.evaluate(event):
                return False
        return True

    return Condition(all_hold, name=" & ".join(one.name for one in several))


def or_(*conditions: "Condition | Callable[[Any], Any]") -> Condition:
    """Holds where one does; they are asked in order, up to the first that does."""
    several = [as_condition(one) for one in conditions]

    async def one_holds(event: Any) -> bool:
        for one in several:
            if await one.evaluate(event):
                return True
        return False

    return Condition(one_holds, name=" | ".join(one.name for one in several))


def not_(given: "Condition | Callable[[Any], Any]") -> Condition:
    """Holds where the other does not."""
    other = as_condition(given)

    async def does_not_hold(event: Any) -> bool:
        return not await other.evaluate(event)

    return Condition(does_not_hold, name=f"~{other.name}")


def always() -> Condition:
    """Holds of every event."""
    return Condition(lambda event: True, name="always")


def never() -> Condition:
    """Holds of no event."""
    return Condition(lambda event: False, name="never")


def has_attr(name: str) -> Condition:
    """Holds of events that have an attribute which is not None; dots lead on, as in `tool_call.name`."""
    return Condition(lambda event: _read(event, name) is not None, name=f"has_attr({name})")


def attr_equals(name: str, value: Any) -> Condition:
    """Holds of events whose attribute equals the value."""
    return Condition(lambda event: _read(event, name) == value, name=f"attr_equals({name}, {value!r})")


def tool_called(name: str) -> Condition:
    """Holds of events of a call of the tool that models know by this name."""
    return Condition(lambda event: _read(event, "tool_call.name") == name, name=f"tool_called({name})")


def error_contains(text: str, *, case_sensitive: bool = False) -> Condition:
    """Holds of events whose error has this text in it."""

    def holds(event: Any) -> bool:
        error = getattr(event, "error", None)
        found = "" if error is None else str(error)
        return text in found if case_sensitive else text.lower() in found.lower()

    return Condition(holds, name=f"error_contains({text!r})")


def is_file_not_found_error() -> Condition:
    """Holds of events whose error says that a file is not there."""

    def holds(event: Any) -> bool:
        error = getattr(event, "error", None)
        kind = getattr(event, "error_type", None) or getattr(error, "error_type", None)
        return isinstance(error, FileNotFoundError) or kind == "FileNotFoundError"

    return Condition(holds, name="is_file_not_found_error")


def _read(event: Any, path: str) -> Any:
    for name in path.split("."):
        event = getattr(event, name, None)
    return event
