"""The Agent: models, tools, hooks and events as an engine module.

`__all__` lists what most agents need. The other names are here because dreadnode exports them from this place. They are
defined in the rooms of this package, beside refold's own names: `chat` (messages), `events`, `generators`, `hooks`,
`reactions`, `stopping`, `tools`, `trajectory`, `subagent`.
"""

from .agent import Agent
from .chat.content import Content as Content
from .chat.messages import Message
from .chat.tool_calls import FunctionCall as FunctionCall
from .chat.tool_calls import FunctionDefinition as FunctionDefinition
from .chat.tool_calls import ToolCall
from .chat.tool_calls import ToolChoice as ToolChoice
from .chat.tool_calls import ToolDefinition as ToolDefinition
from .chat.tool_calls import ToolResponse as ToolResponse
from .chat.usage import Usage
from .chat.validation import sanitize_orphan_tool_messages as sanitize_orphan_tool_messages
from .events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    AgentStep,
    GenerationDelta,
    GenerationEnd,
    GenerationStart,
    GenerationStep,
    ReactStep,
    ToolEnd,
    ToolStart,
    ToolStep,
)
from .events import AgentError as AgentError
from .events import AgentStalled as AgentStalled
from .events import AgentStatus as AgentStatus
from .events import AgentStopReason as AgentStopReason
from .events import CompactionEvent as CompactionEvent
from .events import GenerationContent as GenerationContent
from .events import GenerationError as GenerationError
from .events import GenerationRetry as GenerationRetry
from .events import Heartbeat as Heartbeat
from .events import ToolError as ToolError
from .events import UserInputRequired as UserInputRequired
from .events import event_from_dict as event_from_dict
from .events import event_to_dict as event_to_dict
from .generators import Backoff, GenerateParams, Generator, LiteLLMGenerator, ScriptedGenerator, get_generator
from .generators import CassetteGenerator as CassetteGenerator
from .generators import FunctionGenerator as FunctionGenerator
from .generators import HTTPGenerator as HTTPGenerator
from .generators.summarize import Summary as Summary
from .generators.summarize import find_summarization_boundary as find_summarization_boundary
from .generators.summarize import summarize_conversation as summarize_conversation
from .hooks.hook import Hook, hook
from .hooks.ready_made import summarize_when_long as summarize_when_long
from .hooks.ready_made import tool_metrics as tool_metrics
from .hooks.stop_conditions import StopCondition, stop_condition
from .judge import AgentJudge
from .judge import JudgeResult as JudgeResult
from .loop.state import AgentState
from .modes import ToolMode
from .reactions import Continue, Fail, Finish, Reaction, Retry, RetryWithFeedback
from .runs.batch import Batch as Batch
from .runs.sampling import Samples as Samples
from .runs.task import AgentTask
from .stopping import any_tool_use as any_tool_use
from .stopping import consecutive_errors as consecutive_errors
from .stopping import elapsed_time as elapsed_time
from .stopping import estimated_cost as estimated_cost
from .stopping import generation_count as generation_count
from .stopping import no_new_tool_used as no_new_tool_used
from .stopping import no_tool_calls as no_tool_calls
from .stopping import output as output
from .stopping import step_count as step_count
from .stopping import token_usage as token_usage
from .stopping import tool_error as tool_error
from .stopping import tool_output as tool_output
from .stopping import tool_use as tool_use
from .tools import DEFAULT_CATCH_EXCEPTIONS as DEFAULT_CATCH_EXCEPTIONS
from .tools import (
    AgentInput,
    Config,
    ErrorModel,
    Stop,
    Tool,
    Toolset,
    current_tool_call,
    tool,
    tool_context,
    tool_method,
)
from .tools import Context as Context
from .tools import CurrentTask as CurrentTask
from .tools import ToolMethod as ToolMethod
from .tools import ToolSource as ToolSource
from .tools import discover_tools_on_obj as discover_tools_on_obj
from .tools import offload_tool_output as offload_tool_output
from .tools.results.cache import configure as configure
from .trajectory.converters import load_trajectory_jsonl as load_trajectory_jsonl
from .trajectory.converters import trajectory_from_openai_format as trajectory_from_openai_format
from .trajectory.converters import trajectory_to_jsonl_record as trajectory_to_jsonl_record
from .trajectory.converters import trajectory_to_openai_format as trajectory_to_openai_format
from .trajectory.converters import trajectory_to_rows as trajectory_to_rows
from .trajectory.converters import trajectory_to_turns as trajectory_to_turns
from .trajectory.datasets import trajectories_to_hf_dataset as trajectories_to_hf_dataset
from .trajectory.trajectory import Trajectory
from .warnings import AgentWarning as AgentWarning

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
