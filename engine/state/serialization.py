"""The JSON form of frozen values: how they are written, and how two of them are compared."""

from pathlib import PurePath
from typing import Any

import orjson
from pydantic_core import to_jsonable_python

from ...errors import RefoldError
from ...traces.json_patch.make import Comparison
from ..errors import StateValueError
from .freezer import MAX_DEPTH

_DUMP = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def json_default(value: Any) -> Any:
    """What orjson asks for a value it does not know: a state model's fields, or a leaf's JSON form."""
    if hasattr(type(value), "__refold_shapes__"):
        return value.__dict__
    if isinstance(value, PurePath):  # pydantic-core knows Path alone when it is not told the type
        return str(value)
    return to_jsonable_python(value)


def dump(value: Any) -> bytes:
    """A state or any part of one as JSON bytes, keys in their order; raises StateValueError where it cannot be."""
    try:
        return orjson.dumps(value, json_default, _DUMP)
    except orjson.JSONEncodeError as error:
        if isinstance(error.__cause__, RefoldError):
            raise error.__cause__ from None
        raise StateValueError(f"cannot be written as JSON: {error}") from error


SHALLOW = 2 * MAX_DEPTH
"""How many bytes of JSON, with two for each of a path's, cannot nest too deep."""


def check_depth(data: bytes, path: str = "") -> None:
    """Raises StateValueError where JSON that stands at a path would make a document nest too deep to be read again."""
    if len(data) + 2 * len(path) <= SHALLOW:
        return
    room = MAX_DEPTH - path.count("/")
    if data.count(b"[") + data.count(b"{") > room and _height(orjson.loads(data)) > room:
        raise StateValueError(f"nested deeper than {MAX_DEPTH} levels", path)


def _height(value: Any) -> int:
    """How deep a JSON value nests."""
    height, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        height += 1
        level = [each for one in level for each in (one.values() if isinstance(one, dict) else one)]
    return height


PLAIN = frozenset({str, int, float, bool, type(None)})
"""The types of values that are their own JSON form."""


def view(value: Any) -> Any:
    """The dict or list that stands for a node: a state model's fields, or the value itself."""
    return value.__dict__ if hasattr(type(value), "__refold_shapes__") else value


COMPARISON = Comparison(view, json_default)
"""How values of states are compared."""
