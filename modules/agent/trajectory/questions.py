"""The question of a request, as an event shows it."""

from collections.abc import Mapping
from typing import Any


def question_of(request: Mapping[str, Any]) -> tuple[str, list[str] | None]:
    """Return the question of a request and the answers to choose from.

    A tool that asks a single question has both in the request's details.
    """
    details = (request.get("details") or {}).get("details")
    questions: Any = details.get("questions") if isinstance(details, Mapping) else None
    single = isinstance(questions, list) and len(questions) == 1 and isinstance(questions[0], Mapping)
    question = questions[0] if single else {}
    options: Any = question.get("options")
    listed = options if isinstance(options, list) else []
    found = [each["label"] for each in listed if isinstance(each, Mapping) and "label" in each]
    if not found:
        schema = request.get("schema") or {}
        alternatives = [each for each in (schema, *(schema.get("anyOf") or ())) if isinstance(each, Mapping)]
        found = next((each["enum"] for each in alternatives if each.get("enum")), [])
        found = found or [each["const"] for each in alternatives if "const" in each]
    return str(question.get("prompt") or request.get("prompt") or ""), [str(each) for each in found] or None
