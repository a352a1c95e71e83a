"""Rules of a whole state class, and the validators of its fields.

A state class may not declare what its JSON document would lose or change: private attributes, custom serializers,
cached properties, a `model_post_init`, or settings in `model_config` that act on some ways to make a state and not on
others.

When a commit changes one field, that field's own validators run on it alone; the rest of the model is not validated
again.
"""

from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

from pydantic import BaseModel
from pydantic_core import CoreConfig, SchemaValidator, core_schema

from ....errors import StateDefinitionError, StateValueError
from ..serialization import dump

# Settings on which committed states depend: no change, no unknown fields, no conversion of values.
_KEPT = {"frozen": True, "extra": "forbid", "strict": True}
# Settings that a class may choose: refold freezes, writes and reads its states the same way with any value.
_HARMLESS = frozenset(
    [
        "title",
        "model_title_generator",
        "field_title_generator",
        "json_schema_extra",
        "json_schema_mode_override",
        "regex_engine",
        "json_schema_serialization_defaults_required",
        "alias_generator",
        "populate_by_name",
        "validate_by_alias",
        "validate_by_name",
        "serialize_by_alias",
        "loc_by_alias",
        "use_attribute_docstrings",
        "validate_default",
        "protected_namespaces",
        "defer_build",
        "hide_input_in_errors",
        "validation_error_cause",
        "plugin_settings",
        "cache_strings",
        "validate_return",
        "ignored_types",
    ]
)


def refuse_class(cls: type[BaseModel], model_base: type[BaseModel]) -> None:
    """Raise StateDefinitionError for private attributes, custom serializers, hidden state and loosened config."""
    for name in cls.__private_attributes__:
        raise StateDefinitionError(
            f"{cls.__name__}.{name}",
            "a private attribute is not part of the document, so a replay would lose it; make it a field",
        )
    decorators = cls.__pydantic_decorators__
    for custom in (decorators.field_serializers, decorators.model_serializers):
        for name in custom:
            raise StateDefinitionError(
                f"{cls.__name__}.{name}", "custom serializers would write what cannot be read back; drop them"
            )
    for base in cls.__mro__[: cls.__mro__.index(model_base)]:
        for name, member in vars(base).copy().items():  # another thread may set `__annotations__` meanwhile
            if isinstance(member, cached_property):
                raise StateDefinitionError(
                    f"{cls.__name__}.{name}", "a cached_property writes into the instance; use a property"
                )
    if cls.model_post_init is not model_base.model_post_init:
        raise StateDefinitionError(
            f"{cls.__name__}.model_post_init",
            "it would run for instances made by a call and not for committed ones; use @model_validator(mode='after')",
        )
    for name, wanted in _KEPT.items():
        if cls.model_config.get(name) != wanted:
            raise StateDefinitionError(
                cls.__name__, f"model_config loosens {name}={wanted!r}, on which committed states depend; leave it out"
            )
    for name, value in cls.model_config.items():
        if name not in _KEPT and name not in _HARMLESS and value != model_base.model_config.get(name):
            raise StateDefinitionError(
                cls.__name__,
                f"model_config sets {name}, which would apply when an instance is made or written, but not when a "
                "draft is committed; leave it out, or say it on the field",
            )


def validated_fields(cls: type[BaseModel]) -> set[str]:
    """Return the names of fields that have validators.

    Raises StateDefinitionError for a validator with an `info` argument: through it a validator can see other fields.
    """
    found: set[str] = set()
    for decorator in cls.__pydantic_decorators__.field_validators.values():
        names = cls.model_fields if "*" in decorator.info.fields else decorator.info.fields
        found.update(names)
    fields = _fields(cls) if found else {}
    for name in sorted(found):
        if _wants_info(fields[name]["schema"]):
            raise StateDefinitionError(
                f"{cls.__name__}.{name}",
                "a field validator with an `info` argument depends on more than its field, which may change alone; "
                "leave the argument out, or use @model_validator(mode='after')",
            )
    return found


def field_validator(cls: type[BaseModel], name: str) -> Callable[[Any], Any]:
    """Return a function that runs one field's validators on its value.

    The function builds the validator at its first call, and keeps it.
    """

    @cache
    def validator() -> SchemaValidator:
        schema: Any = cls.__pydantic_core_schema__
        field: Any = _fields(cls)[name]["schema"]
        if schema["type"] == "definitions":
            field = core_schema.definitions_schema(field, schema["definitions"])
        return SchemaValidator(field, CoreConfig(strict=True))

    return lambda value: validator().validate_python(value, strict=True)


class _ReadAgain:
    """Reads as JSON what a `before` or `wrap` validator returned.

    Such a validator gets Python values, from a document those that JSON has: a date is text there, a tuple a list.
    Pydantic would go on with a strict check of Python values, which refuses both, and no document of the class could be
    loaded.
    """

    def __init__(self, cls: type[BaseModel]) -> None:
        self.cls = cls

    def read(self, value: Any, handler: Callable[[Any], Any], info: core_schema.ValidationInfo) -> Any:
        """Validate a value, in a document by its JSON."""
        if info.mode != "json":
            return handler(value)
        try:
            data = dump(value)
        except StateValueError:
            return handler(value)  # which says what is wrong with it
        return self._validator.validate_json(data, strict=True, by_name=True, by_alias=False)

    @cached_property
    def _validator(self) -> SchemaValidator:
        whole: Any = self.cls.__pydantic_core_schema__
        inner = next(node["schema"] for node in _nodes(whole) if _reader(node) is self)
        if whole["type"] == "definitions":
            inner = core_schema.definitions_schema(inner, whole["definitions"])
        return SchemaValidator(inner, CoreConfig(strict=True, extra_fields_behavior="forbid"))


def read_again(cls: type[BaseModel], schema: Any) -> None:
    """Put a `_ReadAgain` behind each `before` and `wrap` validator, once."""
    for node in list(_nodes(schema)):
        if node.get("type") in ("function-before", "function-wrap") and _reader(node) is None:
            inner = node["schema"]
            if _reader(inner) is None:
                node["schema"] = core_schema.with_info_wrap_validator_function(_ReadAgain(cls).read, inner)


def _reader(node: Any) -> _ReadAgain | None:
    """Return the object whose `read` is a schema's function."""
    function = node.get("function")
    found = getattr(function["function"], "__self__", None) if isinstance(function, dict) else None
    return found if isinstance(found, _ReadAgain) else None


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema's dicts at any depth, without a field's default."""
    if isinstance(schema, dict):
        yield schema
        schema = [value for name, value in schema.items() if name not in ("default", "metadata", "serialization")]
    if isinstance(schema, list | tuple):
        for each in schema:
            yield from _nodes(each)


def _fields(cls: type[BaseModel]) -> dict[str, Any]:
    """Return the schemas of a class's fields, without pydantic's wrappers."""
    schema: Any = cls.__pydantic_core_schema__
    definitions = {d["ref"]: d for d in schema["definitions"]} if schema["type"] == "definitions" else {}
    while schema["type"] != "model-fields":
        schema = definitions[schema["schema_ref"]] if schema["type"] == "definition-ref" else schema["schema"]
    fields: dict[str, Any] = schema["fields"]
    return fields


def _wants_info(schema: Any) -> bool:
    """Return whether a function around a field's type takes `info`."""
    while isinstance(schema, dict):
        function = schema.get("function")
        if isinstance(function, dict) and function.get("type") == "with-info" and _reader(schema) is None:
            return True
        schema = schema.get("schema")
    return False
