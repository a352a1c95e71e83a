"""A module's loop with its own hooks, tools, strategy and budget."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from ...engine import AgentModule, RuntimeBudget
from ...engine.effects.spec import spec_of
from ...engine.module import Module
from .diagram import Diagram, Node

_TOOLS = 30
"""The number of tools named by default."""


def module_diagram(module: Module[Any], budget: RuntimeBudget, name: str, *, full: bool = False) -> Diagram:
    """Return the diagram of a module that runs under a budget."""
    cls = type(module)
    diagram = Diagram(f"{name}: the loop, the tools and the budget")
    state = f"→ {cls.state_class.__name__}"
    diagram.row(Node.of("init", "hook", _signature("init_state", cls.init_state), state))
    diagram.row(Node.of("over", "end", "the run ends"), Node.of("check", "engine", "stop criteria", *_limits(budget)))
    diagram.row(Node.of("decide", "hook", _signature("decide", cls.decide)))
    strategy = type(module.branch).__name__
    diagram.row(
        Node.of("branch", "engine", "branch", strategy),
        Node.of("act", "world", *_tools(module, full)),
        Node.of("wait", "world", "wait", "a person answers"),
    )
    diagram.row(Node.of("reduce", "hook", _signature("reduce", cls.reduce), state))
    diagram.row(Node.of("commit", "engine", "commit", "the patch is written to the trace"))
    diagram.connect(
        [
            ("init", "check", ""),
            ("check", "decide", ""),
            ("check", "over", "stop"),
            ("decide", "branch", "branch"),
            ("decide", "act", "act"),
            ("decide", "wait", "wait"),
            ("decide", "reduce", "final"),
            ("branch", "act", "candidate"),
            ("act", "reduce", "results"),
            ("wait", "reduce", "answer"),
            ("reduce", "commit", ""),
            ("commit", "check", "next step"),
        ]
    )
    return diagram


def _limits(budget: RuntimeBudget) -> Iterator[str]:
    yield "a final result"
    yield f"{budget.max_steps:,} steps"
    if budget.max_runtime_seconds is not None:
        yield f"{budget.max_runtime_seconds:,g} seconds"
    if budget.max_tokens is not None:
        yield f"{budget.max_tokens:,} tokens"
    if budget.max_cost_usd is not None:
        yield f"{budget.max_cost_usd:,g} US dollars"


def _tools(module: Module[Any], full: bool) -> Iterator[str]:
    own = type(module).act is not AgentModule.act and type(module).act is not Module.act
    yield "act, the module's own" if own else "act"
    for number, (name, tool) in enumerate(module.tools.items()):
        if not full and number >= _TOOLS:
            yield f"and {len(module.tools) - _TOOLS} more tools"
            return
        yield _signature(name, tool) + ("  idempotent" if spec_of(tool).marks.idempotent else "")
    if not module.tools:
        yield "no tools"


def _signature(name: str, function: Callable[..., Any]) -> str:
    """Return a tool as a call with the names of its parameters."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return f"{name}(…)"
    shown = [f"{_stars(each)}{each.name}" for each in parameters if each.name != "self"]
    return f"{name}({', '.join(shown)})"


def _stars(parameter: inspect.Parameter) -> str:
    return "*" * (parameter.kind is parameter.VAR_POSITIONAL) + "**" * (parameter.kind is parameter.VAR_KEYWORD)
