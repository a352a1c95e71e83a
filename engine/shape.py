"""What a field may hold: a shape turns a value into its frozen, JSON-exact form or says where it cannot."""

from collections.abc import Callable
from math import isfinite
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from .errors import StateValueError
from .frozen import FrozenDict, FrozenList, thaw

MAX_DEPTH = 200
"""How deep containers may nest; the JSON writer's own limit is a little above."""

INT_MIN, INT_MAX = -(2**63), 2**64 - 1


class Freezer:
    """One pass that freezes values: what it stands inside of, and the drafts it has resolved so far.

    `resolved` maps a draft's id to its frozen value; `hints` a frozen value's id to the draft node it came from, where
    that node's touched places still tell all that differs from its base.
    """

    __slots__ = ("depth", "hints", "open", "resolved")

    def __init__(self) -> None:
        self.depth = 0
        self.open: set[int] = set()
        self.resolved: dict[int, Any] = {}
        self.hints: dict[int, Any] = {}

    def enter(self, value: object) -> None:
        """Steps into a container; refuses cycles and what nests too deep to be written."""
        if id(value) in self.open:
            raise StateValueError("the value contains itself; JSON has no cycles")
        if self.depth >= MAX_DEPTH:
            raise StateValueError(f"nested deeper than {MAX_DEPTH} levels")
        self.depth += 1
        self.open.add(id(value))

    def leave(self, value: object) -> None:
        """Steps out of a container."""
        self.depth -= 1
        self.open.discard(id(value))


class Shape(Protocol):
    """What may stand at one place of a state. `label` names the place, for messages."""

    label: str

    def freeze(self, value: Any, freezer: Freezer) -> Any:
        """The value in frozen, JSON-exact form; raises StateValueError with the path where it cannot be had."""


Resolver = Callable[[Any, Freezer], Any]

DRAFT_RESOLVERS: dict[type, Resolver] = {}
"""How a draft of each class becomes frozen; filled by `draft`, so that shapes need not know drafts."""


def exact_str(value: str) -> str:
    """The text itself; raises StateValueError for lone surrogates, which UTF-8 cannot carry."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise StateValueError(
                f"text with a lone surrogate (character {error.start}) cannot be written as UTF-8; "
                "decode the source with errors='replace'"
            ) from None
    return value


def exact_int(value: int) -> int:
    """The integer itself; raises StateValueError beyond 64 bits."""
    if not INT_MIN <= value <= INT_MAX:
        raise StateValueError("an integer beyond 64 bits would not survive JSON; keep it as text")
    return value


def exact_float(value: float) -> float:
    """The number itself; raises StateValueError for NaN and infinities."""
    if not isfinite(value):
        raise StateValueError(f"{value} is not JSON; use None or text")
    return value


def _described(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


class AnyShape:
    """Any JSON value: text, finite numbers, booleans, null, lists and dicts with text keys."""

    def __init__(self, label: str) -> None:
        self.label = label

    def freeze(self, value: Any, freezer: Freezer) -> Any:
        """See Shape.freeze; tuples become lists, subclasses of text and numbers their plain value."""
        kind = type(value)
        if kind is str:
            return value if value.isascii() else exact_str(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return exact_int(value)
        if kind is float:
            return exact_float(value)
        if (kind is FrozenList or kind is FrozenDict) and value.meta is self:
            return value
        resolver = DRAFT_RESOLVERS.get(kind)
        if resolver is not None:
            value = resolver(value, freezer)
            kind = type(value)
            if (kind is FrozenList or kind is FrozenDict) and value.meta is self:
                return value
        if isinstance(value, list | tuple):
            return freeze_list(self, self, value, freezer)
        if isinstance(value, dict):
            return freeze_dict(self, None, self, value, freezer)
        return self._freeze_rest(value)

    def _freeze_rest(self, value: Any) -> Any:
        if isinstance(value, str):
            return exact_str(str.__str__(getattr(value, "value", value)))
        if isinstance(value, int):
            return exact_int(int(value))
        if isinstance(value, float):
            return exact_float(float(value))
        raise StateValueError(
            f"{_described(value)} is not a JSON value; {self.label} holds text, numbers, booleans, None, lists and dicts "
            "(a field of its own type can hold more)"
        )


class ScalarShape:
    """Exactly one of the JSON scalars: `kind` is str, int, float, bool or NoneType. An int is taken as a float's value."""

    def __init__(self, label: str, kind: type) -> None:
        self.label = label
        self.kind = kind

    def freeze(self, value: Any, freezer: Freezer) -> Any:
        """See Shape.freeze."""
        kind = type(value)
        if kind is not self.kind:
            if self.kind is float and kind is int:
                return exact_float(float(exact_int(value)))
            if self.kind in (str, int, float) and isinstance(value, self.kind) and kind is not bool:
                value = self.kind(getattr(value, "value", value))
            else:
                raise StateValueError(f"expected {self.kind.__name__}, got {_described(value)}")
        if kind is bool or value is None:
            return value
        if self.kind is str:
            return exact_str(value)
        return exact_int(value) if self.kind is int else exact_float(value)


class LeafShape:
    """A value with a JSON form of its own (date, enum, path, decimal, …); it is held as it is after that trip."""

    def __init__(self, label: str, annotation: Any) -> None:
        self.label = label
        self.adapter: TypeAdapter[Any] = TypeAdapter(annotation)

    def freeze(self, value: Any, freezer: Freezer) -> Any:
        """See Shape.freeze; also takes the JSON form, and refuses a value whose trip is not stable."""
        try:
            try:
                valid = self.adapter.validate_python(value, strict=True)
            except ValidationError:
                if type(value) not in (str, int, float):
                    raise
                valid = self.adapter.validate_json(to_json(value), strict=True)
            once = self.adapter.dump_json(valid)
            held = self.adapter.validate_json(once, strict=True)
            twice = self.adapter.dump_json(held)
        except ValidationError as error:
            raise StateValueError(first_problem(error)) from None
        except ValueError as error:
            raise StateValueError(f"{_described(value)} cannot be written as JSON: {error}") from None
        if once != twice:
            raise StateValueError(
                f"{_described(value)} does not survive its JSON form: {once.decode()} comes back as {twice.decode()}"
            )
        return held


class ListShape:
    """A list whose items all have one shape."""

    def __init__(self, label: str, item: Shape) -> None:
        self.label = label
        self.item = item

    def freeze(self, value: Any, freezer: Freezer) -> Any:
        """See Shape.freeze."""
        kind = type(value)
        if kind is FrozenList and value.meta is self:
            return value
        resolver = DRAFT_RESOLVERS.get(kind)
        if resolver is not None:
            value = resolver(value, freezer)
            if type(value) is FrozenList and value.meta is self:
                return value
        if not isinstance(value, list):
            raise StateValueError(f"expected a list, got {_described(value)}")
        return freeze_list(self, self.item, value, freezer)


class DictShape:
    """A dict with text-like keys of one shape and values of another."""

    def __init__(self, label: str, key: Shape, value: Shape) -> None:
        self.label = label
        self.key = key
        self.value = value

    def freeze(self, value: Any, freezer: Freezer) -> Any:
        """See Shape.freeze."""
        kind = type(value)
        if kind is FrozenDict and value.meta is self:
            return value
        resolver = DRAFT_RESOLVERS.get(kind)
        if resolver is not None:
            value = resolver(value, freezer)
            if type(value) is FrozenDict and value.meta is self:
                return value
        if not isinstance(value, dict):
            raise StateValueError(f"expected a dict, got {_described(value)}")
        return freeze_dict(self, self.key, self.value, value, freezer)


class TupleShape:
    """A tuple: a value that is replaced whole. `items` are its places; `rest` is the shape of any further ones."""

    def __init__(self, label: str, items: list[Shape], rest: Shape | None) -> None:
        self.label = label
        self.items = items
        self.rest = rest

    def freeze(self, value: Any, freezer: Freezer) -> Any:
        """See Shape.freeze."""
        if not isinstance(value, tuple | list):
            raise StateValueError(f"expected a tuple, got {_described(value)}")
        if len(value) < len(self.items) or (self.rest is None and len(value) > len(self.items)):
            raise StateValueError(f"expected a tuple of {len(self.items)} values, got {len(value)}")
        held: list[Any] = []
        freezer.enter(value)
        for i, item in enumerate(value):
            shape = self.items[i] if i < len(self.items) else self.rest
            try:
                held.append(shape.freeze(item, freezer) if shape else item)
            except StateValueError as error:
                raise error.under(i) from None
        freezer.leave(value)
        return tuple(held)


class UnionShape:
    """One of several shapes that JSON can tell apart: by the kind of value, and models by their tag."""

    def __init__(
        self, label: str, branches: dict[str, Shape], pick_model: Callable[[Any], Shape | None] | None
    ) -> None:
        self.label = label
        self.branches = branches
        self.pick_model = pick_model

    def freeze(self, value: Any, freezer: Freezer) -> Any:
        """See Shape.freeze."""
        shape = self.branches.get(json_kind(value))
        if shape is None and type(value) is int:
            shape = self.branches.get("float")
        if json_kind(value) == "object" and self.pick_model is not None:
            shape = self.pick_model(value) or shape
        if shape is None:
            shape = self.branches.get("leaf") or self._by_base(value)
        if shape is None:
            raise StateValueError(f"expected {' or '.join(self.branches)}, got {_described(value)}")
        return shape.freeze(value, freezer)

    def _by_base(self, value: Any) -> Shape | None:
        for base, name in ((str, "str"), (int, "int"), (float, "float")):
            if isinstance(value, base) and type(value) is not bool and name in self.branches:
                return self.branches[name]
        return None


class CheckedShape:
    """A shape whose field also has constraints or validators of its own; they see the whole field."""

    def __init__(self, label: str, inner: Shape, validate: Callable[[Any], Any]) -> None:
        self.label = label
        self.inner = inner
        self.validate = validate

    def freeze(self, value: Any, freezer: Freezer) -> Any:
        """See Shape.freeze."""
        first = self.inner.freeze(value, freezer)
        try:
            valid = self.validate(thaw(first))
        except ValidationError as error:
            raise StateValueError(first_problem(error)) from None
        if valid == first and type(valid) is type(thaw_kind(first)):
            return first
        return self.inner.freeze(valid, freezer)


def thaw_kind(value: Any) -> Any:
    """An empty plain container of the value's kind, or the value."""
    if isinstance(value, list):
        return []
    return {} if isinstance(value, dict) else value


def json_kind(value: Any) -> str:
    """The JSON kind of a Python value: null, bool, int, float, str, array, object, or leaf for anything else."""
    kind = type(value)
    known = _KINDS.get(kind)
    if known is not None:
        return known
    if isinstance(value, str | int | float):
        return "leaf"
    if isinstance(value, list | tuple):
        return "array"
    return "object" if isinstance(value, dict) or hasattr(kind, "__refold_shapes__") else "leaf"


_KINDS = {
    type(None): "null",
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    FrozenList: "array",
    FrozenDict: "object",
}


def freeze_list(owner: Shape, item: Shape, value: Any, freezer: Freezer) -> FrozenList:
    """A FrozenList of the owner's shape from any list or tuple."""
    freezer.enter(value)
    held: list[Any] = []
    keep = held.append
    freeze = item.freeze
    try:
        for each in list.__iter__(value) if isinstance(value, list) else value:
            keep(freeze(each, freezer))
    except StateValueError as error:
        raise error.under(len(held)) from None
    freezer.leave(value)
    frozen = FrozenList(held)
    frozen.meta = owner
    return frozen


def freeze_dict(
    owner: Shape, key_shape: Shape | None, item: Shape, value: dict[Any, Any], freezer: Freezer
) -> FrozenDict:
    """A FrozenDict of the owner's shape; a `key_shape` of None means text keys only."""
    freezer.enter(value)
    frozen = FrozenDict()
    frozen.meta = owner
    keep = dict.__setitem__
    freeze = item.freeze
    key: Any = ""
    try:
        for key, each in dict.items(value):
            if key_shape is not None:
                key = key_shape.freeze(key, freezer)
            elif type(key) is not str:
                key = _text_key(key)
            elif not key.isascii():
                exact_str(key)
            keep(frozen, key, freeze(each, freezer))
    except StateValueError as error:
        raise error.under(key if isinstance(key, str) and key.isprintable() else repr(key)) from None
    freezer.leave(value)
    return frozen


def _text_key(key: Any) -> str:
    if isinstance(key, str):
        return exact_str(str.__str__(getattr(key, "value", key)))
    raise StateValueError(f"the key {_described(key)} is not text; JSON has text keys only, so 1 and '1' would collide")


def first_problem(error: ValidationError) -> str:
    """The first thing that pydantic found wrong, in one line."""
    problem = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    return f"{place}: {problem['msg']}" if place else problem["msg"]
