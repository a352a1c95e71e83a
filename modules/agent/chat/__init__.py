"""The chat with a model: messages, tool calls, usage."""

from .content import ContentAudioInput, ContentImageUrl, ContentText

__all__ = [
    "ContentAudioInput",
    "ContentImageUrl",
    "ContentText",
]
