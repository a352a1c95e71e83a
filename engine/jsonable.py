"""The JSON form of a result: what a module, and a replay, will see of what an effect or a tool gave."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

from .errors import StateValueError
from .state import StateModel, json_value

_TEXTUAL = (date, datetime, time, timedelta, Decimal, UUID, PurePath)


def json_result(value: Any, returns: TypeAdapter[Any] | None, label: str) -> Any:
    """The value in frozen JSON form, by its declared type where it has one.

    Raises StateValueError with the path of what JSON cannot carry: NaN, sets, bytes, objects, lone surrogates, ….
    """
    if returns is not None:
        try:
            value = returns.dump_python(value, mode="json", warnings="error")
        except PydanticSerializationError as error:
            reason = " ".join(str(error).split())
            raise StateValueError(f"{label} is not of its declared type: {reason}") from None
        return json_value(value, label)
    kind = type(value)
    if kind is str or kind is dict or kind is list:
        try:
            return json_value(value, label)
        except StateValueError:
            pass
    return json_value(_plain(value), label)


def _plain(value: Any) -> Any:
    """Models, dataclasses, dates and the like by their JSON forms; whatever else is left for the check to refuse."""
    convert: Callable[[Any], Any] = _plain
    if isinstance(value, StateModel):
        return value.to_dict()
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: convert(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {k: convert(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [convert(v) for v in value]
    if isinstance(value, Enum):
        return convert(value.value)
    return to_jsonable_python(value) if isinstance(value, _TEXTUAL) else value
