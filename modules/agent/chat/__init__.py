"""The chat with a model: messages, tool calls, usage."""

from .content import ContentAudioInput, ContentFile, ContentImageUrl, ContentText

__all__ = [
    "ContentAudioInput",
    "ContentFile",
    "ContentImageUrl",
    "ContentText",
]
