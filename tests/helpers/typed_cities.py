"""An output type, and drawn answers of a model that fit it or do not."""

import json
import random
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, PositiveInt

from refold.modules.agent import Message, ToolCall
from refold.modules.agent.generators import Generation

GOOD = {"name": "Paris", "people": 2}
_WRONG: list[Any] = [None, True, -1, 0, 1.5, 10**30, "two", "2", [], {}, [[1]], {"a": {"b": []}}]


class City(BaseModel):
    """A city."""

    name: str
    people: PositiveInt


def hostile_answer(seed: int, mode: str) -> Generation:
    """Return an answer that a model might give instead of a City in JSON."""
    draw = random.Random(f"{mode}{seed}")
    text = json.dumps(_document(draw))
    for _ in range(draw.randrange(3)):
        text = draw.choice(_CHANGES)(draw, text)
    message, reason = Message("assistant", text), "stop"
    if mode == "tool" and draw.random() < 0.8:
        names = [
            draw.choice(["final_result", "final_result", "look", "final_city"]) for _ in range(draw.randrange(1, 4))
        ]
        calls = [
            ToolCall.of(f"c{seed}_{i}", name, text if i == 0 else json.dumps(GOOD)) for i, name in enumerate(names)
        ]
        message, reason = Message("assistant", draw.choice(["", "Here:", text]), tool_calls=calls), "tool_calls"
    elif draw.random() < 0.15:
        message = Message("assistant", text, tool_calls=[ToolCall.of(f"c{seed}", "look", '{"n": 1}')])
    kind = draw.random()
    if kind < 0.1:
        message, reason = Message("assistant", draw.choice(["", "I cannot help with that."])), "refusal"
    elif kind < 0.2:
        reason = "length"
    return Generation(message=message, stop_reason=reason)


def _document(draw: random.Random) -> Any:
    document: dict[str, Any] = dict(GOOD)
    for _ in range(draw.randrange(3)):
        document[draw.choice(["name", "people", "more"])] = draw.choice(_WRONG)
    if draw.random() < 0.2:
        document.pop(draw.choice([*document]))
    return draw.choice([document, document, document, [document, document], {"value": document}, json.dumps(document)])


_CHANGES: list[Callable[[random.Random, str], str]] = [
    lambda draw, text: text[: draw.randrange(len(text) + 1)],
    lambda draw, text: f"```json\n{text}\n```",
    lambda draw, text: f"Here you are:\n\n```\n{text}\n```\nAnything else?",
    lambda draw, text: text + text,
    lambda draw, text: f"{text}\n\nAnd: {json.dumps(GOOD)}",
    lambda draw, text: text.replace('"', "'"),
    lambda draw, text: text.replace(":", ": NaN, ", 1),
    lambda draw, text: "[" * draw.choice([1, 90, 5000]) + text,
    lambda draw, text: text.replace("2", "1e999"),
    lambda draw, text: text.replace("Paris", "\\ud800"),
    lambda draw, text: f"<think>{text}</think>{text}",
]
