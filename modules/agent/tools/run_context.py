"""The run as tools see it: its dependencies and its state."""

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import Signature
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

from ....tasks import Task
from ....traces.errors import UsageError
from ..chat.tool_calls import ToolCall
from .context import Context, current_tool_call, current_tool_context

D_co = TypeVar("D_co", covariant=True)
DEPS, STATE = "deps", "state"
"""The facts of a ToolContext that a RunContext reads."""


@dataclass(frozen=True)
class RunContext(Generic[D_co]):
    """The run, as a parameter of a tool or an output function.

        @tool
        async def orders(run: RunContext[Db], limit: int) -> list[str]: ...

    The model does not see the parameter.

    Attributes:
        deps: what the caller passed as `deps=`: `agent.run(goal, deps=db)`. It is never recorded.
        state: the committed AgentState.
        task: the task of the run.
        call: the call that the tool answers, or None.
    """

    deps: D_co
    state: Any
    task: Task
    call: ToolCall | None = None


class FilledByRun(Context):
    """The marker of a parameter of the type RunContext."""

    def resolve(self) -> RunContext[Any]:
        """Return the run; raise NoContextError outside one."""
        context = current_tool_context()
        if context is None or STATE not in context.facts:
            return self._or_default("the RunContext", "no run of an Agent calls this")  # type: ignore[no-any-return]
        facts = context.facts
        return RunContext(facts[DEPS], facts[STATE], context.task, current_tool_call.get())


FILLED_BY_RUN = FilledByRun()


def is_run_context(annotation: Any) -> bool:
    """Return whether an annotation is RunContext or RunContext[...]."""
    return annotation is RunContext or get_origin(annotation) is RunContext


def check_deps(agent: str, signatures: Iterator[tuple[str, Signature]], deps: Any) -> None:
    """Raise UsageError if a function needs dependencies and there are none."""
    for name, signature in signatures if deps is None else ():
        for parameter in signature.parameters.values():
            if is_run_context(parameter.annotation) and not _accepts_none(get_args(parameter.annotation)):
                wanted = getattr(get_args(parameter.annotation)[0], "__name__", parameter.annotation)
                raise UsageError(
                    f"The agent {agent!r} needs deps: the tool {name} takes RunContext[{wanted}]. "
                    "To fix: pass deps=... to run, resume or fork, or to agent.module(deps=...)."
                )


def _accepts_none(types: tuple[Any, ...]) -> bool:
    if not types or types[0] in (None, NoneType, Any) or isinstance(types[0], TypeVar):
        return True
    return get_origin(types[0]) in (Union, UnionType) and NoneType in get_args(types[0])


def takes_run(signatures: Iterator[Signature]) -> bool:
    """Return whether a function has a RunContext parameter."""
    return any(is_run_context(p.annotation) for each in signatures for p in each.parameters.values())
