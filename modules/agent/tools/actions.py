"""The action that stands for a model's call, and how its arguments get from the one to the other unchanged."""

import json
from collections.abc import Mapping
from typing import Any

from ....engine import Action
from ....errors import DecisionError
from ..chat.tool_calls import ToolCall
from .output import clean

RAW_ARGUMENTS = "$arguments"
"""The one argument of an action whose call's own arguments are no JSON object: their text, as the model wrote it."""

UNNAMED = "invalid_tool_call"
"""The name of an action whose call has none."""


def action_for(call: ToolCall) -> Action:
    """The action that carries out a model's call, with the call's id.

    Its arguments are the call's, where they are a JSON object that a trace holds exactly; else it has a single one,
    the text as the model wrote it, and the tool says what is wrong with that.
    """
    name, text = call.function.name or UNNAMED, call.function.arguments
    try:
        arguments = _decode(text)
        if "\\u" in text:  # half a surrogate is JSON, and no text
            arguments = _decode(clean(_encode(arguments)))
        if isinstance(arguments, dict) and RAW_ARGUMENTS not in arguments:
            return Action(name, arguments, call.id or None)
    except (ValueError, RecursionError, DecisionError):
        pass
    return Action(name, {RAW_ARGUMENTS: clean(text)}, call.id or None)


def text_of_args(args: Mapping[str, Any]) -> str:
    """The text of a call's arguments, from those of its action."""
    raw = args.get(RAW_ARGUMENTS)
    return raw if isinstance(raw, str) else _encode(args)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


_decode = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_unique).decode
_encode = json.JSONEncoder(ensure_ascii=False).encode
