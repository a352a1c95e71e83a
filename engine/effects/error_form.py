"""An exception as a trace has it, and what it is."""

import errno
from typing import Any

from ...errors import ChildRunError, EffectError
from ...traces.printable import message_of, repr_of
from ..state.model import json_value

_OWN = "refold."
_IN_ALL = (Exception, BaseException, object)


def error_form(error: BaseException) -> dict[str, Any]:
    """Return an exception as the outcome of its call has it."""
    form: dict[str, Any]
    if isinstance(error, EffectError):
        form, kinds = {"type": error.error_type, "message": error.message}, error.kinds
    else:
        form, kinds = {"type": type(error).__name__, "message": message_of(error)}, error_kinds(error)
    if kinds:
        form["kinds"] = list(kinds)
    try:
        data = getattr(error, "data", None)
    except Exception as failed:  # noqa: BLE001 - a stranger's property
        data = f"(its data cannot be read: {type(failed).__name__})"
    if data is not None:
        try:
            form["data"] = json_value(data, "the error's data")
        except ValueError:
            form["data"] = repr_of(data).encode("utf-8", "replace").decode()
    return form


def error_kinds(error: BaseException) -> tuple[str, ...]:
    """Return what an exception is, in addition to its class's name.

    The result has the names of its base classes, of its `errno` such as `ENOSPC`, and its HTTP status such as `HTTP
    503`. An EffectError is what its effect's error was; a ChildRunError is its cause, too. The names of refold's other
    errors say enough.
    """
    if isinstance(error, EffectError):
        return (error.error_type, *error.kinds)
    if type(error).__module__.startswith(_OWN) and not isinstance(error, ChildRunError):
        return ()
    kinds = [cls.__name__ for cls in type(error).__mro__[1:] if cls not in _IN_ALL]
    number = _read(error, "errno")
    kinds += [errno.errorcode[number]] if type(number) is int and number in errno.errorcode else []
    holders = (error, _read(error, "response"))
    values = [_read(each, name) for each in holders for name in ("status_code", "status", "code")]
    kinds += [f"HTTP {each}" for each in values if type(each) is int and 100 <= each < 600][:1]
    cause = error.__cause__
    if isinstance(error, ChildRunError) and cause is not None:
        kinds += [type(cause).__name__, *error_kinds(cause)]
    return tuple(dict.fromkeys(kinds))


def _read(holder: Any, name: str) -> Any:
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - a stranger's property
        return None
