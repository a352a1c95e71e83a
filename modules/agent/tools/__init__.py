"""Tools: functions that models can call, with schemas and results."""

from .actions import action_for
from .as_tools import actions_of
from .context import AgentInput, Config, Context, CurrentTask, ToolContext, current_tool_call, tool_context
from .decorator import external, tool
from .method import ToolMethod, tool_method
from .results.errors import DEFAULT_CATCH_EXCEPTIONS, ErrorModel, Stop
from .results.offload import offload_tool_output
from .results.outcome import ToolOutcome
from .tool_class import Tool, ToolSource
from .toolset import Toolset, discover_tools_on_obj

__all__ = [
    "DEFAULT_CATCH_EXCEPTIONS",
    "AgentInput",
    "Config",
    "Context",
    "CurrentTask",
    "ErrorModel",
    "Stop",
    "Tool",
    "ToolContext",
    "ToolMethod",
    "ToolOutcome",
    "ToolSource",
    "Toolset",
    "action_for",
    "actions_of",
    "current_tool_call",
    "discover_tools_on_obj",
    "external",
    "offload_tool_output",
    "tool",
    "tool_context",
    "tool_method",
]
