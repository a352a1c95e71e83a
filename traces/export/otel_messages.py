"""Messages in the JSON form of OpenTelemetry's conventions: roles with parts."""

from collections.abc import Mapping
from typing import Any

from ..analysis.messages import body_of, calls_of
from .values import value_text


def input_messages(messages: Any) -> str | None:
    """Return a request's messages as JSON; None if they are no list."""
    if not isinstance(messages, list):
        return None
    return value_text([_message(message) for message in messages if isinstance(message, Mapping)])


def output_messages(message: Any, finish_reason: Any) -> str | None:
    """Return a model's answer as JSON; None if there is none."""
    if not isinstance(message, Mapping):
        return None
    return value_text([{**_message(message), "finish_reason": finish_reason}])


def system_instructions(message: Any) -> str | None:
    """Return a system's message as JSON; None if there is none."""
    return value_text(_message(message)["parts"]) if isinstance(message, Mapping) else None


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    body = body_of(message)[1]
    if message.get("role") == "tool":
        parts = [{"type": "tool_call_response", "id": message.get("tool_call_id"), "response": body}]
    else:
        parts = [_part(part) for part in (body if isinstance(body, list) else [body] if body else [])]
        parts += [
            {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.args}
            for call in calls_of(message)
        ]
    return {"role": message.get("role"), "parts": parts}


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "content": part}
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {"type": "text", "content": part["text"]}
    return {"type": str(part.get("type") if isinstance(part, Mapping) else "other"), "content": part}
