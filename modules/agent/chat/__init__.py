"""The chat with a model: messages, tool calls, usage."""

from .content import Content, ContentAudioInput, ContentImageUrl, ContentText
from .messages import Message
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
    "ToolCall",
    "ToolChoice",
    "ToolDefinition",
    "ToolResponse",
    "Usage",
]
