"""Reads a state class's annotations: builds each field's shape, and refuses what JSON cannot carry there and back."""

import types
from collections import abc
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, SecretBytes, SecretStr, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic.functional_serializers import PlainSerializer, SerializeAsAny, WrapSerializer
from typing_extensions import TypeAliasType

from .errors import StateDefinitionError
from .shape import (
    AnyShape,
    CheckedShape,
    DictShape,
    Freezer,
    LeafShape,
    ListShape,
    ScalarShape,
    Shape,
    TupleShape,
    UnionShape,
    json_kind,
)

_SCALARS: dict[Any, str] = {str: "str", int: "int", float: "float", bool: "bool", type(None): "null"}
_TEXT_LEAVES = (date, datetime, time, timedelta, Decimal, UUID, PurePath)
_ADVICE = {
    set: "a set has no order that survives; use a sorted list or a dict with None values",
    frozenset: "a frozenset has no order that survives; use a sorted list or a tuple",
    bytes: "bytes are not JSON; hold text, or base64 in a str",
    bytearray: "bytes are not JSON; hold text, or base64 in a str",
    complex: "a complex number has no JSON form; hold a tuple of two floats",
    SecretStr: "a secret must not stand in a state, which is written to the trace; read it where the effect needs it",
    SecretBytes: "a secret must not stand in a state, which is written to the trace; read it where the effect needs it",
}


class ModelShape:
    """A nested state model; `load` builds one from a plain dict."""

    def __init__(self, label: str, cls: type[BaseModel]) -> None:
        self.label = label
        self.cls = cls

    def freeze(self, value: Any, freezer: Freezer) -> Any:
        """See Shape.freeze."""
        if type(value) is self.cls:
            return value
        return self.cls.__refold_coerce__(value, freezer)  # type: ignore[attr-defined]


class _Builder:
    """Builds the shapes of one class; `model_base` is StateModel, passed in so that this file need not know it."""

    def __init__(self, model_base: type[BaseModel]) -> None:
        self.model_base = model_base

    def build(self, annotation: Any, label: str) -> Shape:
        while isinstance(annotation, TypeAliasType):
            annotation = annotation.__value__
        if annotation is Any or annotation is object:
            return AnyShape(label)
        if isinstance(annotation, TypeVar):
            bound = annotation.__bound__
            return self.build(Any if bound is None or isinstance(bound, ForwardRef) else bound, label)
        if annotation in (None, type(None)):
            return ScalarShape(label, type(None))
        if isinstance(annotation, type) and annotation in _SCALARS:
            return ScalarShape(label, annotation)
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self.annotated(args[0], args[1:], label)
        if origin in (Union, types.UnionType):
            return self.union(args, None, label)
        if origin is Literal:
            return self.literal(args, label)
        kind = origin or annotation
        if kind in (list, abc.Sequence, abc.MutableSequence):
            return ListShape(label, self.build(args[0] if args else Any, f"{label}[]"))
        if kind in (dict, abc.Mapping, abc.MutableMapping):
            return self.mapping(args, label)
        if kind is tuple:
            return self.places(args, label)
        return self.leaf(annotation, kind, label)

    def leaf(self, annotation: Any, kind: Any, label: str) -> Shape:
        if not isinstance(kind, type):
            raise StateDefinitionError(label, f"{annotation!r} is not a type that a state can hold")
        for refused, why in _ADVICE.items():
            if issubclass(kind, refused):
                raise StateDefinitionError(label, why)
        if issubclass(kind, BaseModel):
            if not issubclass(kind, self.model_base):
                raise StateDefinitionError(label, f"{kind.__name__} is not a StateModel; derive it from StateModel")
            if kind is self.model_base or not kind.model_fields and kind.__subclasses__():
                raise StateDefinitionError(
                    label,
                    f"a field of type {kind.__name__} would drop its subclasses' fields; name them in a tagged union",
                )
            return ModelShape(label, annotation)
        if issubclass(kind, Enum):
            values = [member.value for member in kind]
            if not all(type(v) in (str, int) for v in values) or len({str(v) for v in values}) < len(values):
                raise StateDefinitionError(
                    label, f"the values of {kind.__name__} must be texts or integers, all distinct"
                )
            return LeafShape(label, annotation)
        if issubclass(kind, _TEXT_LEAVES):
            return LeafShape(label, annotation)
        raise StateDefinitionError(
            label,
            f"{getattr(kind, '__name__', kind)} is not a JSON type; use text, numbers, lists, dicts, dates, enums, paths, "
            "decimals, or a class derived from StateModel",
        )

    def annotated(self, inner: Any, extras: tuple[Any, ...], label: str) -> Shape:
        tags = [e.discriminator for e in extras if isinstance(e, FieldInfo) and e.discriminator]
        for extra in extras:
            if isinstance(extra, PlainSerializer | WrapSerializer | SerializeAsAny):
                raise StateDefinitionError(label, "custom serializers would write what cannot be read back; drop them")
        if tags and get_origin(inner) in (Union, types.UnionType):
            return self.union(get_args(inner), tags[0], label)
        shape = self.build(inner, label)
        if any(not isinstance(e, str | FieldInfo) or (isinstance(e, FieldInfo) and e.metadata) for e in extras):
            adapter: TypeAdapter[Any] = TypeAdapter(Annotated[inner, *extras])
            return CheckedShape(label, shape, adapter.validate_python)
        return shape

    def literal(self, values: tuple[Any, ...], label: str) -> Shape:
        for value in values:
            if not isinstance(value, Enum) and type(value) not in (str, int, bool, type(None)):
                raise StateDefinitionError(label, f"the literal {value!r} is not text, an integer, a boolean or None")
        if len({str(getattr(v, "value", v)) for v in values}) < len(values):
            raise StateDefinitionError(label, f"the literals {values!r} are not distinct as text")
        return LeafShape(label, Literal[values])

    def mapping(self, args: tuple[Any, ...], label: str) -> Shape:
        key, value = args if args else (Any, Any)
        if key is Any:
            key = str
        base = get_args(key)[0] if get_origin(key) is Annotated else key
        textual = (
            base in (str, int)
            or (get_origin(base) is Literal and all(type(v) is str for v in get_args(base)))
            or (isinstance(base, type) and issubclass(base, Enum | UUID | date) and not issubclass(base, datetime))
        )
        if not textual:
            raise StateDefinitionError(
                label, f"keys of type {getattr(key, '__name__', key)} could collide as text; use str or int keys"
            )
        return DictShape(label, self.build(key, f"{label}.keys"), self.build(value, f"{label}[*]"))

    def places(self, args: tuple[Any, ...], label: str) -> Shape:
        if not args:
            return TupleShape(label, [], AnyShape(f"{label}[]"))
        if len(args) == 2 and args[1] is Ellipsis:
            return TupleShape(label, [], self.build(args[0], f"{label}[]"))
        return TupleShape(label, [self.build(a, f"{label}[{i}]") for i, a in enumerate(args)], None)

    def union(self, args: tuple[Any, ...], tag: Any, label: str) -> Shape:
        branches: dict[str, Shape] = {}
        models: list[type[BaseModel]] = []
        for arg in args:
            shape = self.build(arg, label)
            kind = _branch_kind(shape)
            if isinstance(shape, ModelShape):
                models.append(shape.cls)
                if len(models) > 1:
                    continue
            if isinstance(shape, UnionShape):
                raise StateDefinitionError(label, "a union inside a union; write it as one")
            if kind in branches or (kind == "leaf" and "str" in branches) or (kind == "str" and "leaf" in branches):
                raise StateDefinitionError(
                    label, f"JSON cannot tell the members of this union apart (two are written as {kind})"
                )
            branches[kind] = shape
        picker = _model_picker(models, tag, label) if len(models) > 1 else None
        if len(branches) == 1 and not models:
            return next(iter(branches.values()))
        return UnionShape(label, branches, picker)


def _branch_kind(shape: Shape) -> str:
    inner = shape.inner if isinstance(shape, CheckedShape) else shape
    if isinstance(inner, ScalarShape):
        return _SCALARS[inner.kind]
    if isinstance(inner, ListShape | TupleShape):
        return "array"
    if isinstance(inner, DictShape | ModelShape):
        return "object"
    if isinstance(inner, AnyShape):
        raise StateDefinitionError(shape.label, "a union with Any takes everything; write Any alone")
    return "leaf"


def _model_picker(models: list[type[BaseModel]], tag: Any, label: str) -> Any:
    """Tells models of a union apart by the field whose literal differs in each."""
    shared = [n for n in models[0].model_fields if all(n in m.model_fields for m in models)]
    for name in [tag] if isinstance(tag, str) else shared:
        table: dict[Any, Shape] = {}
        values = [(v, m) for m in models for v in _literal_values(m.model_fields[name].annotation)]
        for value, model in values:
            table[value] = ModelShape(label, model)
        every_model_has_one = {m for _, m in values} == set(models)
        if len(table) == len(values) and every_model_has_one:
            return lambda value, name=name, table=table: table.get(
                value.get(name) if isinstance(value, dict) else value.__dict__.get(name)
            )
    names = ", ".join(m.__name__ for m in models)
    raise StateDefinitionError(
        label, f"JSON cannot tell {names} apart; give each a Literal field of its own, such as kind: Literal['a'] = 'a'"
    )


def _literal_values(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def field_shapes(cls: type[BaseModel], model_base: type[BaseModel]) -> dict[str, Shape]:
    """The shape of each field of a state class, in field order; raises StateDefinitionError for what is refused."""
    builder = _Builder(model_base)
    _refuse_class(cls, model_base)
    shapes: dict[str, Shape] = {}
    decorated = {f for d in cls.__pydantic_decorators__.field_validators.values() for f in d.info.fields}
    for name, field in cls.model_fields.items():
        label = f"{cls.__name__}.{name}"
        if field.exclude:
            raise StateDefinitionError(label, "exclude=True would leave it out of the trace")
        shape = builder.annotated(field.annotation, tuple(field.metadata), label) if field.metadata else None
        if shape is None and field.discriminator is not None:
            shape = builder.union(get_args(field.annotation), field.discriminator, label)
        shape = shape or builder.build(field.annotation, label)
        if name in decorated or "*" in decorated:
            shape = CheckedShape(label, shape, _field_validator(cls, name))
        shapes[name] = shape
    return shapes


def _field_validator(cls: type[BaseModel], name: str) -> Any:
    """Runs one field's own validators, taken from the class's core schema, on a whole value."""
    from pydantic_core import SchemaValidator, core_schema

    @cache
    def validator() -> SchemaValidator:
        schema: Any = cls.__pydantic_core_schema__
        definitions = schema.get("definitions", []) if schema["type"] == "definitions" else []
        while schema["type"] != "model-fields":
            schema = schema["schema"]
        field: Any = schema["fields"][name]["schema"]
        return SchemaValidator(core_schema.definitions_schema(field, definitions) if definitions else field)

    return lambda value: validator().validate_python(value)


def _refuse_class(cls: type[BaseModel], model_base: type[BaseModel]) -> None:
    if cls.__private_attributes__:
        raise StateDefinitionError(
            f"{cls.__name__}.{next(iter(cls.__private_attributes__))}",
            "a private attribute is not part of the document, so a replay would lose it; make it a field",
        )
    decorators = cls.__pydantic_decorators__
    for custom in (decorators.field_serializers, decorators.model_serializers):
        for name in custom:
            raise StateDefinitionError(
                f"{cls.__name__}.{name}", "custom serializers would write what cannot be read back; drop them"
            )
    for name, wanted in (("frozen", True), ("extra", "forbid"), ("strict", True)):
        if cls.model_config.get(name) != wanted:
            raise StateDefinitionError(
                cls.__name__, f"model_config loosens {name}={wanted!r}, on which committed states depend; leave it out"
            )
    for name in cls.model_config:
        if name in (
            "arbitrary_types_allowed",
            "ser_json_inf_nan",
            "json_encoders",
            "use_enum_values",
        ) and cls.model_config[
            name  # type: ignore[literal-required]
        ] != model_base.model_config.get(name):
            raise StateDefinitionError(
                cls.__name__, f"model_config sets {name}, which changes what JSON carries; leave it out"
            )


__all__ = ["ModelShape", "field_shapes", "json_kind"]
