"""Parameters that the run fills and the model never sees: the goal, the task, the call itself."""

import inspect
import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ....errors import UsageError
from ..chat.tool_calls import ToolCall

_NONE: Any = object()


class NoContextError(UsageError, LookupError):
    """A tool's parameter stands for something of the run that is not there; `wanted` is what it stands for."""

    def __init__(self, wanted: str, known: str) -> None:
        super().__init__(
            f"{wanted} is not known here; {known}. Pass the argument yourself, give the marker a default=, "
            "or call inside `with tool_context(...)`"
        )
        self.wanted = wanted


@dataclass(frozen=True)
class ToolContext:
    """What the tools of a run can be given: its `inputs` (`goal` among them), its `task`, and facts of any name.

    Whoever sets it makes it from the committed state and the run's task alone, so that a tool that is entered again
    on resume is given the same.
    """

    inputs: Mapping[str, Any] = field(default_factory=dict)
    task: Any = None
    facts: Mapping[str, Any] = field(default_factory=dict)


_context: ContextVar[ToolContext | None] = ContextVar("refold_tool_context", default=None)
current_tool_call: ContextVar[ToolCall | None] = ContextVar("refold_current_tool_call", default=None)
"""The call that the running tool answers."""


class tool_context:
    """`with tool_context(context):` gives the tools called inside what their `Context` parameters stand for."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def __enter__(self) -> ToolContext:
        self._token = _context.set(self._context)
        return self._context

    def __exit__(self, *raised: object) -> None:
        _context.reset(self._token)


class Context:
    """Marks a parameter that the run fills: as its default, or in its `Annotated`.

    Such a parameter is not in the tool's schema, and a model that passes it is told that there is none of the name.
    Who calls the function from Python may pass it. Subclass it and write `resolve` for a marker of your own. To type
    checkers the markers below are of any type, so that they can be the default of a parameter of whatever type.
    """

    def __init__(self, *, default: Any = _NONE) -> None:
        self.default = default

    def resolve(self) -> Any:
        """The value, at the time of the call; raises LookupError where there is none and no default."""
        return self._or_default(str(self), "a Context has no value of its own")

    def _or_default(self, wanted: str, known: str) -> Any:
        if self.default is _NONE:
            raise NoContextError(wanted, known)
        return self.default

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class AgentInput(Context):
    """One of the run's inputs by its name, such as `AgentInput("goal")`."""

    if TYPE_CHECKING:
        name: str

        def __new__(cls, name: str, *, default: Any = ...) -> Any: ...  # noqa: D102
    else:

        def __init__(self, name, *, default=_NONE):
            super().__init__(default=default)
            self.name = name

    def resolve(self) -> Any:
        """The input; raises NoContextError where the run has none of that name."""
        context = _context.get()
        inputs = context.inputs if context is not None else {}
        if self.name in inputs:
            return inputs[self.name]
        known = f"the inputs are {', '.join(sorted(inputs))}" if inputs else "there are no inputs"
        return self._or_default(f"the input {self.name!r}", known)

    def __repr__(self) -> str:
        return f"AgentInput({self.name!r})"


class CurrentTask(Context):
    """The task that the run works on."""

    if TYPE_CHECKING:

        def __new__(cls, *, default: Any = ...) -> Any: ...  # noqa: D102

    def resolve(self) -> Any:
        """The task; raises NoContextError outside of a run."""
        context = _context.get()
        if context is None or context.task is None:
            return self._or_default("the current task", "no task is being worked on")
        return context.task


class CurrentToolCall(Context):
    """The ToolCall that is being answered."""

    if TYPE_CHECKING:

        def __new__(cls, *, default: Any = ...) -> Any: ...  # noqa: D102

    def resolve(self) -> Any:
        """The call; raises NoContextError where the function was called from Python."""
        call = current_tool_call.get()
        return call if call is not None else self._or_default("the tool call", "no model has called this")


class ContextFact(Context):
    """A fact of the run by its name, as whoever runs the tools has put it there."""

    if TYPE_CHECKING:
        name: str

        def __new__(cls, name: str, *, default: Any = ...) -> Any: ...  # noqa: D102
    else:

        def __init__(self, name, *, default=_NONE):
            super().__init__(default=default)
            self.name = name

    def resolve(self) -> Any:
        """The fact; raises NoContextError where there is none of that name."""
        context = _context.get()
        if context is not None and self.name in context.facts:
            return context.facts[self.name]
        return self._or_default(f"the fact {self.name!r}", "nobody has set it")

    def __repr__(self) -> str:
        return f"ContextFact({self.name!r})"


class EnvVar(Context):
    """An environment variable, read when the tool is called."""

    if TYPE_CHECKING:
        name: str

        def __new__(cls, name: str, *, default: Any = ...) -> Any: ...  # noqa: D102
    else:

        def __init__(self, name, *, default=_NONE):
            super().__init__(default=default)
            self.name = name

    def resolve(self) -> Any:
        """Its text; raises NoContextError where it is not set."""
        value = os.environ.get(self.name)
        return value if value is not None else self._or_default(f"${self.name}", "it is not set")

    def __repr__(self) -> str:
        return f"EnvVar({self.name!r})"


class Config(Context):
    """A setting of the tool's author: of a tool's parameter, hidden from the model and always its default; or of a
    Toolset's field, which whoever makes the toolset may give.

    `options` are pydantic's of a Field (`description`, `ge`, ...), for fields alone. `help` is a `description`, and
    options that pydantic does not know are kept and do nothing.
    """

    if TYPE_CHECKING:
        default_factory: Callable[[], Any] | None
        options: dict[str, Any]

        def __new__(  # noqa: D102
            cls, default: Any = ..., *, default_factory: Callable[[], Any] | None = None, **options: Any
        ) -> Any: ...
    else:

        def __init__(self, default=_NONE, *, default_factory=None, **options):
            super().__init__(default=_NONE if default is ... else default)
            self.default_factory = default_factory
            self.options = options

    def resolve(self) -> Any:
        """The default, or what the factory makes."""
        if self.default_factory is not None:
            return self.default_factory()
        return self._or_default("the setting", "Config() was given neither default nor default_factory")

    def as_field(self) -> Any:
        """The setting as pydantic's Field; required where there is no default."""
        known = inspect.signature(Field).parameters
        options = {name: value for name, value in self.options.items() if name in known}
        if "help" in self.options:
            options.setdefault("description", self.options["help"])
        if self.default_factory is not None:
            return Field(default_factory=self.default_factory, **options)
        return Field(**options) if self.default is _NONE else Field(default=self.default, **options)

    def __repr__(self) -> str:
        return f"Config({self.default!r})" if self.default is not _NONE else "Config()"
