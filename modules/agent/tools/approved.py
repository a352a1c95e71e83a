"""Tools whose calls need an approval, and tools that a client answers."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from ....engine import ask, effect
from .as_tools import as_tools
from .context import current_tool_call
from .tool_class import Approve, Tool


def approved(tools: Any, when: Approve = True) -> list[Tool[..., Any]]:
    """Return the tools with `approve=when`: a person must approve their calls.

    `tools` are what `Agent(tools=...)` takes. For tools of MCP servers, use a rule of the policy.
    """
    return [tool.with_(approve=when) for tool in as_tools(tools)]


def external(
    name: str,
    description: str,
    parameters: type[BaseModel] | Mapping[str, Any],
    *,
    returns: Any = None,
    seconds: float | None = None,
) -> Tool[..., Any]:
    """Return a tool without code, whose calls a client answers.

    A call waits like a question to a person: `resume(trace, value, request=id)` and `on_wait` give its result. The
    request's `details["details"]` have the tool's name, its arguments and the call's id.

    Args:
        name: the tool's name.
        description: the description for the model.
        parameters: the arguments, as a pydantic model or a JSON Schema.
        returns: the type or the JSON Schema of results; by default any JSON.
        seconds: how long a call waits; then it fails with a TimeoutError, which the model reads.
    """
    model = parameters if isinstance(parameters, type) else None
    schema = dict(parameters) if isinstance(parameters, Mapping) else parameters.model_json_schema()

    @effect(idempotent=True)
    async def answered(**arguments: Any) -> Any:
        if model is not None:
            arguments = model.model_validate(arguments).model_dump(mode="json")
        call = current_tool_call.get()
        details = {"name": name, "arguments": arguments, "call": None if call is None else call.id}
        found = await ask(f"{name}: {description}", returns, seconds, details=details)
        if found is None and seconds is not None:
            raise TimeoutError(f"nobody answered in {seconds:g} s")
        return found

    fn: Callable[..., Any] = answered
    return Tool(name=name, description=description, parameters_schema=schema, fn=fn)
