"""A question of a server's to a person, as `ask` puts it, and the answer as the server takes it."""

from collections.abc import Mapping
from typing import Any

from mcp import types

DECLINE = "decline"


def question_of(params: types.ElicitRequestParams) -> dict[str, Any]:
    """A question in JSON: a form to fill in, or a URL to go to."""
    if isinstance(params, types.ElicitRequestURLParams):
        return {"message": params.message, "url": params.url}
    return {"message": params.message, "schema": dict(params.requested_schema)}


def text_of(question: Mapping[str, Any], server: str) -> str:
    """The question as a person reads it."""
    told = f"{server} asks: {question['message']}"
    if "url" not in question:
        return told
    return f"{told}\nGo to {question['url']} if you trust it, and answer true once you are done there."


def schema_of(question: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an answer: the form, or true; "decline" says no, null says nothing."""
    yes = {"const": True} if "url" in question else question["schema"]
    return {"anyOf": [yes, {"const": DECLINE}, {"type": "null"}]}


def answer_of(answer: Any) -> dict[str, Any]:
    """What the server is told, in JSON."""
    if answer is None:
        return {"action": "cancel"}
    if answer == DECLINE:
        return {"action": "decline"}
    return {"action": "accept", "content": dict(answer)} if isinstance(answer, Mapping) else {"action": "accept"}


def result_of(answer: Mapping[str, Any]) -> types.ElicitResult:
    """What the server is told, as the package `mcp` takes it."""
    return types.ElicitResult.model_validate(answer)
