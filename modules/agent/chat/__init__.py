"""The chat with a model: messages, tool calls, usage."""

from .content import Content, ContentAudioInput, ContentImageUrl, ContentText
from .messages import Message, Role
from .tool_calls import FunctionCall, FunctionDefinition, ToolCall, ToolChoice, ToolDefinition, ToolResponse
from .usage import Usage

__all__ = [
    "Content",
    "ContentAudioInput",
    "ContentImageUrl",
    "ContentText",
    "FunctionCall",
    "FunctionDefinition",
    "Message",
    "Role",
    "ToolCall",
    "ToolChoice",
    "ToolDefinition",
    "ToolResponse",
    "Usage",
]
