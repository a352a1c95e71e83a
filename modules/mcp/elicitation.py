"""A server's question to a person, for `ask` and for the protocol."""

from collections.abc import Mapping
from typing import Any

from mcp import types

DECLINE = "decline"


def question_of(params: types.ElicitRequestParams) -> dict[str, Any]:
    """Return a question as JSON: a form, or a URL to visit."""
    if isinstance(params, types.ElicitRequestURLParams):
        return {"message": params.message, "url": params.url}
    return {"message": params.message, "schema": dict(params.requested_schema)}


def text_of(question: Mapping[str, Any], server: str) -> str:
    """Return the text of the question for a person."""
    told = f"{server} asks: {question['message']}"
    if "url" not in question:
        return told
    return f"{told}\nGo to {question['url']} if you trust it, and answer true once you are done there."


def schema_of(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an answer.

    A filled form, or true for a question with an address, accepts; "decline" refuses; null is no answer.
    """
    yes = {"const": True} if "url" in question else question["schema"]
    return {"anyOf": [yes, {"const": DECLINE}, {"type": "null"}]}


def answer_of(answer: Any) -> dict[str, Any]:
    """Return the reply to the server, as JSON."""
    if answer is None:
        return {"action": "cancel"}
    if answer == DECLINE:
        return {"action": "decline"}
    return {"action": "accept", "content": dict(answer)} if isinstance(answer, Mapping) else {"action": "accept"}


def result_of(answer: Mapping[str, Any]) -> types.ElicitResult:
    """Return the reply in the form of the package `mcp`."""
    return types.ElicitResult.model_validate(answer)
