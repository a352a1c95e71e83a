"""Tools: functions that models can call, with schemas and results."""

from .actions import action_for
from .as_tools import actions_of, by_wire_name
from .context import (
    AgentInput,
    Config,
    Context,
    ContextFact,
    CurrentTask,
    CurrentToolCall,
    ToolContext,
    current_tool_call,
    tool_context,
)
from .decorator import tool
from .method import ToolMethod, tool_method
from .names import WireNameError
from .reentrant_context import OtherEventLoopError
from .results.errors import DEFAULT_CATCH_EXCEPTIONS, ErrorModel, Stop, ToolSignal
from .results.offload import offload_tool_output
from .results.outcome import ToolOutcome
from .schema import ToolDefinitionError
from .tool_class import Tool, ToolSource
from .toolset import Toolset, discover_tools_on_obj

__all__ = [
    "DEFAULT_CATCH_EXCEPTIONS",
    "AgentInput",
    "Config",
    "Context",
    "ContextFact",
    "CurrentTask",
    "CurrentToolCall",
    "ErrorModel",
    "OtherEventLoopError",
    "Stop",
    "Tool",
    "ToolContext",
    "ToolDefinitionError",
    "ToolMethod",
    "ToolOutcome",
    "ToolSignal",
    "ToolSource",
    "Toolset",
    "WireNameError",
    "action_for",
    "actions_of",
    "by_wire_name",
    "current_tool_call",
    "discover_tools_on_obj",
    "offload_tool_output",
    "tool",
    "tool_context",
    "tool_method",
]
