"""The name under which a model knows a tool: the tool's own, after the namespaces that it comes from."""

import re

from ....errors import DefinitionError

MAX_WIRE_NAME = 64
"""How long a function's name may be for the APIs of models."""

_SEPARATOR = "__"
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")


class WireNameError(DefinitionError, ValueError):
    """A tool has no name that can be sent to a model; `tool` and `namespace` are what it was to be made from."""

    def __init__(self, message: str, tool: str, namespace: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.tool = tool
        self.namespace = namespace


def wire_name(name: str, namespace: tuple[str, ...] = ()) -> str:
    """The bare name where there is no namespace, else the namespaces and the name, joined by `__`.

    What a namespace holds beside letters, digits and underscores becomes `_`. The name is never more than 64
    characters: each namespace that is longer than its share of them is cut in its middle, the tool's own name never.

    Raises WireNameError where the tool's name leaves no room, or where nothing of a namespace is left.
    """
    if not namespace:
        if len(name) > MAX_WIRE_NAME:
            raise WireNameError(f"the name {name!r} has {len(name)} characters; models take {MAX_WIRE_NAME}", name)
        return name
    segments = [_UNSAFE.sub("_", segment).strip("_") for segment in namespace]
    if "" in segments:
        empty = namespace[segments.index("")]
        raise WireNameError(f"the namespace {empty!r} of {name!r} has no letter and no digit", name, namespace)
    room = MAX_WIRE_NAME - len(name) - len(_SEPARATOR) * len(segments)
    if room < len(segments):
        raise WireNameError(
            f"the name {name!r} has {len(name)} characters, which leaves no room for {'.'.join(namespace)} before it: "
            f"models take {MAX_WIRE_NAME} in all",
            name,
            namespace,
        )
    if sum(map(len, segments)) > room:
        share = room // len(segments)
        segments = [_cut(segment, share) for segment in segments]
    return _SEPARATOR.join([*segments, name])


def _cut(segment: str, length: int) -> str:
    """The segment in at most `length` characters: `head_tail` where there is room for both."""
    if len(segment) <= length:
        return segment
    if length < 3:
        return segment[:length]
    tail = (length - 1) // 2
    return f"{segment[: length - 1 - tail]}_{segment[-tail:]}"
