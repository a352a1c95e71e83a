"""The JSON form of frozen values: how they are written, and how two of them are compared."""

from pathlib import PurePath
from typing import Any

import orjson
from pydantic_core import to_jsonable_python

from ..errors import RefoldError
from ..traces.compare import Comparison
from .errors import StateValueError

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


PLAIN = frozenset({str, int, float, bool, type(None)})
"""The types of values that are their own JSON form."""


def view(value: Any) -> Any:
    """The dict or list that stands for a node: a state model's fields, or the value itself."""
    return value.__dict__ if hasattr(type(value), "__refold_shapes__") else value


COMPARISON = Comparison(view, json_default)
"""How values of states are compared."""
