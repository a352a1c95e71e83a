"""Marks in a request that end the cacheable part of the prompt."""

from typing import Any

MARK = {"type": "ephemeral"}


def mark_for_caching(chat: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the chat, in OpenAI's form, with marks for caching.

    The marks are on the last system message and on the last two messages of users or tools, each on the last non-empty
    part. Other marks are removed. Unchanged dicts are shared with the argument.
    """
    bare = [without_marks(message) for message in chat]
    systems = [i for i, message in enumerate(bare) if message["role"] == "system"]
    others = [i for i, message in enumerate(bare) if message["role"] not in ("system", "assistant")]
    for i in systems[-1:] + others[-2:]:
        bare[i] = _marked(bare[i])
    return bare


def without_marks(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message, in OpenAI's form, without its marks."""
    content = message["content"]
    if not isinstance(content, list):
        return message
    parts = [{name: value for name, value in part.items() if name != "cache_control"} for part in content]
    return {**message, "content": parts}


def _marked(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    for i in range(len(parts) - 1, -1, -1):
        if parts[i].get("type") != "text" or parts[i]["text"]:
            parts[i] = {**parts[i], "cache_control": dict(MARK)}
            return {**message, "content": parts}
    return message
