"""Validators of a single field, from its class's schema.

When a commit changes one field, its validators run on that field alone; the rest of the model is not validated again.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic_core import CoreConfig, SchemaValidator, core_schema

from ....errors import StateDefinitionError


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
        if isinstance(function, dict) and function.get("type") == "with-info":
            return True
        schema = schema.get("schema")
    return False
