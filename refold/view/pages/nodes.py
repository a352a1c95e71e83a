"""JSON values for the page: in pieces, with their writers.

A text is cut, a container has its first members, and an answer has a limited number of nodes. If something is left out,
`at` says where it is found.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ...traces.json_patch.apply import escape
from ...traces.json_patch.fold import Writers, last_writer, writers_of_member

Json = dict[str, Any]
TEXT = 2_000
"""The largest number of units of text in a node."""
CLIP = 20_000
"""The largest number of units of a text outside nodes: an error, a prompt."""
NAME = 200
"""The largest number of units of a name."""
MEMBERS = 200
"""The largest number of members of a container."""
NODES = 3_000
"""The largest number of nodes in an answer."""
LEVELS = 50
"""The largest number of levels of a value: JSON is written to 254 levels, a level here takes two, and a step's changes
as many again."""
_EXACT = 2**53
"""Integers up to here are exact in JavaScript."""
_PLAIN = 1e21
"""JavaScript writes whole numbers below this without a point or an exponent, like JSON's integers."""


class Nodes:
    """Makes and counts the nodes of one answer.

    Args:
        load: returns a recorded value with its blob loaded.
        text: units of text in one node.
    """

    def __init__(self, load: Callable[[Any], Any] | None = None, *, text: int = TEXT, most: int = NODES) -> None:
        self._load = load
        self._text = text
        self.left = most
        self._level = 0

    def node(
        self,
        value: Any,
        at: str | None = None,
        *,
        key: str | int | None = None,
        writers: Writers | None = None,
        offset: int = 0,
        limit: int = MEMBERS,
    ) -> Json:
        """Return a value as a node.

        `at` is where the value is found; `writers` are the value's. `offset` and `limit` choose the members of the
        value itself.
        """
        self.left -= 1
        node: Json = {} if key is None else {"key": key}
        if self._load is not None:
            value = self._load(value)
        if isinstance(value, Mapping):
            node |= {"kind": "object", "size": len(value)}
            names = list(value)[offset : offset + limit] if len(value) > limit or offset else value
            members: list[tuple[str | int, Any]] = [(name, value[name]) for name in names]
            self._members(node, members, at, writers)
        elif isinstance(value, (list, tuple)):
            node |= {"kind": "array", "size": len(value)}
            self._members(node, list(enumerate(value[offset : offset + limit], offset)), at, writers)
        elif isinstance(value, str):
            cut, size = cut_text(value, self._text)
            node |= {"kind": "text", "value": cut, "size": size}
            if at is not None and len(cut) < len(value):
                node["at"] = at
        else:
            node |= {"kind": _kind(value), "value": value, "size": 0}
            if type(value) is int and abs(value) > _EXACT:
                node |= {"value": float(value), "raw": str(value)}
            elif type(value) is float and value.is_integer() and abs(value) < _PLAIN:
                node["raw"] = repr(value)  # 1.0, 1e+16, -0.0
        if writers is not None:
            node["by"] = last_writer(writers)
        return node

    def _members(
        self, node: Json, members: list[tuple[str | int, Any]], at: str | None, writers: Writers | None
    ) -> None:
        if at is not None and node["size"] > len(members):
            node["at"] = at
        if self._level >= LEVELS and members:
            if at is not None:
                node["at"] = at
            return
        if self.left < len(members) and self.left < NODES:  # at most one container more than fits is listed
            if self.left <= 0 and members:
                if at is not None:
                    node["at"] = at
                return
            members = members[: self.left]
            if at is not None:
                node["at"] = at
        # Members are counted before the members inside them, so that a wide value shows its width first.
        self.left -= len(members)
        self._level += 1
        children = []
        for key, value in members:
            self.left += 1
            place = None if at is None else f"{at}/{escape(str(key))}"
            below = None if writers is None else writers_of_member(writers, key)
            children.append(self.node(value, place, key=key, writers=below))
        self._level -= 1
        node["children"] = children


def _kind(value: Any) -> str:
    return "null" if value is None else "boolean" if isinstance(value, bool) else "number"


def units(text: str) -> int:
    """Return how many UTF-16 units a text has: its length in JavaScript."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def clip(text: str, most: int = CLIP) -> str:
    """Return a text, cut with a note of the rest."""
    piece, size = cut_text(text, most)
    left = size - units(piece)
    return f"{piece}… ({left:,} more characters)" if left else text


def error_json(error: Mapping[str, Any]) -> Json:
    """Return an error in the page's form."""
    return {"type": clip(error["type"], NAME), "message": clip(error["message"])}


def cut_text(text: str, most: int, offset: int = 0) -> tuple[str, int]:
    """Return a piece of a text, and the text's length.

    The piece has `most` UTF-16 units, from unit `offset` on; the length is in units, too. A character of two units is
    never cut: the piece is then a unit shorter, or starts a unit later.
    """
    if text.isascii():
        return text[offset : offset + most], len(text)
    if not offset and len(text) <= most // 2:
        return text, units(text)
    data = text.encode("utf-16-le", "surrogatepass")
    piece = data[2 * offset : 2 * (offset + most)]
    return piece.decode("utf-16-le", "ignore"), len(data) // 2
