"""A server's result as a tool's outcome, and the reverse."""

import json
import re
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from mcp import types

from ..agent.chat.content import Content, ContentAudioInput, ContentFile, ContentImageUrl, ContentText, stored_part
from ..agent.chat.files import loaded_part
from ..agent.chat.messages import Message
from ..agent.tools import ErrorModel, ToolOutcome

_TEXTUAL = re.compile(r"text/|application/([\w.-]+\+)?(json|xml|yaml|x-yaml|x-ndjson)\b")
TOOL_ERROR = "MCPToolError"
"""The error type of a call whose result the server marks as an error."""


def outcome_of(result: types.CallToolResult) -> ToolOutcome:
    """Return the outcome of a call: text, otherwise parts.

    It is text if all parts are text. Structured content comes last, unless the text already is that JSON.
    """
    parts = [stored_part(_part(block)) for block in result.content]
    data = result.structured_content
    if data is not None and not _is_repeated(data, [part.text for part in parts if isinstance(part, ContentText)]):
        parts.append(ContentText(text=json.dumps(data, ensure_ascii=False)))
    if all(isinstance(part, ContentText) for part in parts):
        text = "\n".join(map(str, parts))
        return ToolOutcome.of_error(ErrorModel(type=TOOL_ERROR, content=text)) if result.is_error else ToolOutcome(text)
    if not result.is_error:
        return ToolOutcome(parts)
    text = "\n".join(str(part) for part in parts)
    return ToolOutcome.of_error(ErrorModel(type=TOOL_ERROR, content=text))


def result_of(message: Message) -> types.CallToolResult:
    """Return a tool's message as a result of refold's server."""
    blocks = [_text(message.body)] if isinstance(message.body, str) else _blocks(message.body)
    return types.CallToolResult(content=blocks, is_error="error_type" in message.metadata)


def _is_repeated(data: dict[str, Any], texts: Sequence[str]) -> bool:
    """Return whether texts are the data as JSON.

    Servers wrap a value that is no object in `{"result": value}`, and write each item of a list as a block.
    """
    if not texts:
        return False
    comparable = [_comparable(text) for text in texts]
    forms = {*comparable, f"[{', '.join(comparable)}]"}
    wrapped = data.get("result") if len(data) == 1 else None
    return _comparable(data) in forms or (wrapped is not None and _comparable(wrapped) in forms)


def _comparable(value: Any) -> str:
    """Return a value, or a text that is JSON, as JSON."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return json.dumps(value, sort_keys=True)


def _part(block: Any) -> Content:
    if isinstance(block, types.TextContent):
        return ContentText(text=block.text)
    if isinstance(block, types.ImageContent):
        return ContentImageUrl.from_url(f"data:{block.mime_type};base64,{block.data}")
    if isinstance(block, types.AudioContent):
        kind = block.mime_type.partition("/")[2].removeprefix("x-") or "unknown"
        return ContentAudioInput(input_audio=ContentAudioInput.Audio(data=block.data, format=kind))
    if isinstance(block, types.ResourceLink):
        label = ": ".join(text for text in (block.title or block.name, block.description) if text)
        return ContentText(text=f"[{label}]({block.uri})")
    if isinstance(block, types.EmbeddedResource):
        return _resource(block.resource)
    return ContentText(text=block.model_dump_json(by_alias=True, exclude_none=True))


def _resource(resource: types.TextResourceContents | types.BlobResourceContents) -> Content:
    if isinstance(resource, types.TextResourceContents):
        return ContentText(text=resource.text)
    kind = resource.mime_type or "application/octet-stream"
    if _TEXTUAL.match(kind):
        with suppress(ValueError):
            return ContentText(text=b64decode(resource.blob, validate=True).decode())
    if kind.startswith("image/"):
        return ContentImageUrl.from_url(f"data:{kind};base64,{resource.blob}")
    return ContentText(text=f"[{kind} of {len(resource.blob) * 3 // 4} bytes]({resource.uri})")


def _blocks(parts: Sequence[Content]) -> list[types.ContentBlock]:
    return [_block(loaded_part(part)) for part in parts]


def _block(part: Content) -> types.ContentBlock:
    if isinstance(part, ContentFile):
        head, _, data = (part.url or "").partition(",")
        if not head.startswith("data:"):
            return _text(str(part))
        resource = types.BlobResourceContents(
            uri=f"file:///{part.name or 'file'}", mime_type=part.media_type, blob=data
        )
        return types.EmbeddedResource(resource=resource)
    if isinstance(part, ContentAudioInput):
        return types.AudioContent(data=part.input_audio.data, mime_type=f"audio/{part.input_audio.format}")
    if isinstance(part, ContentImageUrl):
        head, _, data = part.image_url.url.partition(",")
        if head.startswith("data:") and head.endswith(";base64"):
            return types.ImageContent(data=data, mime_type=head[5:-7])
        return _text(part.image_url.url)
    return _text(part.text)


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)
