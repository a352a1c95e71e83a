"""The JSON value of an element, from type, schema or form."""

import json
from collections.abc import Mapping
from typing import Any

from .elements import ITEM, Element
from .markup import plain_text

NOT_JSON: Any = object()
"""The result of `as_json` for text that is not JSON."""


def value_of(element: Element, schema: Any, root: Any) -> Any:
    """Return the JSON value of an element.

    The element's `type` attribute decides, otherwise the schema, otherwise the element's form.
    """
    schema = resolved(schema, root)
    if element.type is not None:
        return _typed(element, element.type, schema, root)
    types = allowed_types(schema, root)
    if "array" in types and (element.elements or "string" not in types):
        return _typed(element, "array", schema, root)
    if "object" in types and (element.elements or element.members or "string" not in types):
        return _typed(element, "object", schema, root)
    if types and "string" not in types:
        read = as_json(plain_text(element.body).strip())
        return read if read is not NOT_JSON else plain_text(element.body)
    if types:
        return plain_text(element.body)
    if element.elements:
        is_list = all(child.tag.name == ITEM for child in element.elements)
        return _typed(element, "array" if is_list else "object", schema, root)
    if element.members and not element.body.strip():
        return dict(element.members)
    return plain_text(element.body)


def _typed(element: Element, type_: str, schema: Any, root: Any) -> Any:
    if type_ == "string":
        return plain_text(element.body)
    if type_ == "object" and (element.elements or element.members or not element.body.strip()):
        return object_value(element, element.members, _for_type(schema, "object", root), root)
    if type_ == "array" and (element.elements or not element.body.strip()):
        items = _for_type(schema, "array", root).get("items", {})
        return [value_of(child, items, root) for child in element.elements]
    text = plain_text(element.body).strip()
    read = as_json(text)
    if read is NOT_JSON:
        return {"True": True, "False": False, "None": None}.get(text, plain_text(element.body))
    return read


def object_value(element: Element, members: Mapping[str, str], schema: Any, root: Any) -> dict[str, Any]:
    """Return an element's members as a dict.

    A repeated member becomes a list. A child element replaces the attribute of the same name.
    """
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    found: dict[str, Any] = dict(members)
    repeated: set[str] = set()
    for child in element.elements:
        key = child.key
        value = value_of(child, properties.get(key, others if isinstance(others, dict) else {}), root)
        if key in found and key not in members:
            found[key] = [*(found[key] if key in repeated else [found[key]]), value]
            repeated.add(key)
        else:
            found[key] = value
    return found


def as_json(text: str) -> Any:
    """Return the JSON value of a text, or NOT_JSON."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return NOT_JSON


def resolved(schema: Any, root: Any) -> dict[str, Any]:
    """Return the schema behind a reference, or the schema itself."""
    seen = 0
    while isinstance(schema, dict) and "$ref" in schema and seen < 20:
        name = str(schema["$ref"]).removeprefix("#/$defs/")
        schema = root.get("$defs", {}).get(name, {}) if isinstance(root, dict) else {}
        seen += 1
    return schema if isinstance(schema, dict) else {}


def _options(schema: dict[str, Any], root: Any) -> list[dict[str, Any]]:
    several = schema.get("anyOf") or schema.get("oneOf")
    return [resolved(option, root) for option in several] if isinstance(several, list) else [schema]


def allowed_types(schema: dict[str, Any], root: Any) -> set[str]:
    """Return the types that a schema allows; empty if unknown."""
    allowed: set[str] = set()
    for option in _options(schema, root):
        said = option.get("type")
        if said is None and "enum" in option:
            said = [type_of(value) for value in option["enum"]]
        if said is None and "const" in option:
            said = type_of(option["const"])
        if said is None:
            return set()
        allowed.update([said] if isinstance(said, str) else said)
    return allowed


def _for_type(schema: dict[str, Any], type_: str, root: Any) -> dict[str, Any]:
    """Return the schema's option for values of a type."""
    return next((option for option in _options(schema, root) if option.get("type") == type_), schema)


def type_of(value: Any) -> str:
    """Return the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
