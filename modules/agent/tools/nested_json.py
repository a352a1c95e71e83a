"""Arguments written as JSON text where no text is allowed."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

_KINDS: dict[type, str] = {dict: "object", list: "array"}


def unpacked(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return the value with such texts read, at any depth.

    It is the value itself if there are none. A text stays if the schema allows one at its place, and if it is not the
    JSON of what the schema allows.
    """
    return _read(value, [schema], schema.get("$defs") or schema.get("definitions") or {})


def _read(value: Any, schemas: list[Any], defs: Mapping[str, Any]) -> Any:
    seen: set[str] = set()
    choices = [
        choice
        for i, schema in enumerate(schemas)
        if schema not in schemas[:i]
        for choice in _choices(schema, defs, seen)
    ]
    kinds = {kind for choice in choices for kind in _kinds(choice, value)}
    if isinstance(value, str) and not kinds & {"string", "any"} and kinds & {"array", "object"}:
        try:
            inner = json.loads(value, strict=False)
        except (ValueError, RecursionError):
            return value
        return _read(inner, schemas, defs) if _KINDS.get(type(inner)) in kinds else value
    fitting = [choice for choice in choices if {_KINDS.get(type(value)), "any"} & {*_kinds(choice, value)}]
    if isinstance(value, list):
        items = [_read(item, [_item(choice, i) for choice in fitting], defs) for i, item in enumerate(value)]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        members = {k: _read(v, [_member(choice, k) for choice in fitting], defs) for k, v in value.items()}
        return value if all(members[k] is v for k, v in value.items()) else members
    return value


def _choices(schema: Any, defs: Mapping[str, Any], seen: set[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the choices of a schema, without references and unions.

    `seen` has the references that were followed: following each once ends cycles, and finds every choice.
    """
    if not isinstance(schema, Mapping):
        yield {}
        return
    rest = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf", "oneOf", "allOf")}
    if isinstance(reference := schema.get("$ref"), str):
        target = defs.get(reference.rpartition("/")[2])
        if reference not in seen:
            seen.add(reference)
            yield from _choices({**target, **rest} if isinstance(target, Mapping) else {}, defs, seen)
    elif isinstance(union := schema.get("anyOf") or schema.get("oneOf"), list):
        for each in union:
            yield from _choices({**rest, **each} if isinstance(each, Mapping) else each, defs, seen)
    elif isinstance(parts := schema.get("allOf"), list):
        for part in parts:
            rest |= part if isinstance(part, Mapping) else {}
        yield from _choices(rest, defs, seen)
    else:
        yield schema


def _kinds(choice: Mapping[str, Any], value: Any) -> list[str]:
    """Return a schema's types; none for a value not listed."""
    listed = choice.get("enum", [choice["const"]] if "const" in choice else None)
    if isinstance(listed, list) and value not in listed:
        return []
    kinds = choice.get("type", "any")
    return [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)]


def _item(choice: Mapping[str, Any], place: int) -> Any:
    first = choice.get("prefixItems") or []
    return first[place] if place < len(first) else choice.get("items", True)


def _member(choice: Mapping[str, Any], name: str) -> Any:
    properties = choice.get("properties") or {}
    return properties[name] if name in properties else choice.get("additionalProperties", True)
