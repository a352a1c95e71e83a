"""The Agent: models, tools, hooks and events as an engine module.

`__all__` lists what most agents need. The other names are here because dreadnode exports them from this place. They are
defined in the rooms of this package, beside refold's own names: `chat` (messages), `events`, `generators`, `hooks`,
`reactions`, `stopping`, `tools`, `trajectory`, `subagent`.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [
    "Agent",
    "AgentEnd",
    "AgentEvent",
    "AgentInput",
    "AgentJudge",
    "AgentStart",
    "AgentState",
    "AgentStep",
    "AgentTask",
    "Backoff",
    "Config",
    "Continue",
    "ErrorModel",
    "Fail",
    "Finish",
    "GenerateParams",
    "GenerationDelta",
    "GenerationEnd",
    "GenerationStart",
    "GenerationStep",
    "Generator",
    "Hook",
    "LiteLLMGenerator",
    "Message",
    "ReactStep",
    "Reaction",
    "Retry",
    "RetryWithFeedback",
    "ScriptedGenerator",
    "Stop",
    "StopCondition",
    "Tool",
    "ToolCall",
    "ToolEnd",
    "ToolMode",
    "ToolStart",
    "ToolStep",
    "Toolset",
    "Trajectory",
    "Usage",
    "current_tool_call",
    "get_generator",
    "hook",
    "stop_condition",
    "tool",
    "tool_context",
    "tool_method",
]
