"""The typed state of a run: frozen models whose every value survives its JSON form."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn, Self

import orjson
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema, to_jsonable_python

from .annotations import field_shapes
from .errors import FrozenStateError, StateMigrationError, StateValueError
from .frozen import thaw
from .reasons import StopReason
from .shape import DRAFT_RESOLVERS, AnyShape, Freezer, Shape, first_problem

Document = dict[str, Any]
Migration = Callable[[Document], Document]

_DUMP = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def json_default(value: Any) -> Any:
    """What orjson asks for a value it does not know: a state model's fields, or a leaf's JSON form."""
    if isinstance(value, StateModel):
        return value.__dict__
    return to_jsonable_python(value)


def dump(value: Any) -> bytes:
    """A state or any part of one as JSON bytes, keys in their order."""
    return orjson.dumps(value, json_default, _DUMP)


def _freeze_fields(instance: Any) -> Any:
    """Freezes an instance that pydantic has just validated; runs for every state model that comes to be."""
    values = instance.__dict__
    freezer = Freezer()
    name = ""
    try:
        for name, shape in type(instance).__refold_shapes__.items():
            values[name] = shape.freeze(values[name], freezer)
    except StateValueError as error:
        raise error.under(name) from None
    instance._check()
    return instance


class StateModel(BaseModel):
    """The base of every model inside a state: frozen at every depth, strict, with no unknown fields.

    Lists and dicts of an instance are frozen when it is made. Inside `reduce`, what is reached through the draft can be
    changed in place; elsewhere `model_copy(update=…)` gives a changed, validated copy.

    Raises:
        StateDefinitionError: when a subclass declares a field that JSON cannot carry there and back unchanged.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())

    __refold_shapes__: ClassVar[dict[str, Shape]] = {}
    __refold_revalidates__: ClassVar[str] = ""

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        if cls.__base__ is BaseModel:
            return
        cls.__refold_shapes__ = field_shapes(cls, StateModel)
        validators = cls.__pydantic_decorators__.model_validators.values()
        modes = {v.info.mode for v in validators}
        cls.__refold_revalidates__ = "" if not modes else "after" if modes == {"after"} else "whole"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(_freeze_fields, handler(source))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise FrozenStateError(f"{type(self).__name__}.{name}", "assignment")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenStateError(f"{type(self).__name__}.{name}", "deletion")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_json, (type(self), dump(self))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with the fields of `update` changed and validated; raises StateValueError for a bad one."""
        if not update:
            return self
        return assemble(type(self), {**self.__dict__, **update}, update)

    def copy(self, **kwargs: Any) -> NoReturn:  # type: ignore[override]
        """Not available: pydantic's old `copy` skips validation. Use `model_copy(update=…)`."""
        raise TypeError("a state model has no copy(); use model_copy(update={...}), which validates")

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> NoReturn:
        """Not available: a state that skipped validation could not be replayed. Call the class instead."""
        raise TypeError(f"model_construct skips validation, which a state cannot do without; call {cls.__name__}(...)")

    @classmethod
    def __refold_coerce__(cls, value: Any, freezer: Freezer) -> Any:
        """An instance of exactly this class from a draft or a plain dict; called by the shapes."""
        resolver = DRAFT_RESOLVERS.get(type(value))
        if resolver is not None:
            value = resolver(value, freezer)
        if type(value) is cls:
            return value
        if isinstance(value, dict):
            try:
                return cls.model_validate(thaw(value))
            except ValidationError as error:
                raise StateValueError(first_problem(error)) from None
        hint = ""
        if isinstance(value, cls):
            hint = f"; the fields of {type(value).__name__} would be lost on reload, name both in a tagged union"
        raise StateValueError(f"expected {cls.__name__}, got {type(value).__name__}{hint}")

    def _check(self) -> None:
        """Raises StateValueError where an invariant over several fields is broken; see StateSchema."""

    def to_dict(self) -> Document:
        """The state's document: plain JSON values under Python field names."""
        document: Document = orjson.loads(dump(self))
        return document

    @classmethod
    def from_dict(cls, doc: Mapping[str, Any]) -> Self:
        """The state of a document; raises StateValueError for unknown fields and values that do not fit."""
        try:
            return cls.model_validate_json(orjson.dumps(doc), by_name=True, by_alias=False)
        except ValidationError as error:
            raise StateValueError(f"not a {cls.__name__}: {first_problem(error)}") from None


def _from_json(cls: type[StateModel], data: bytes) -> StateModel:
    return cls.model_validate_json(data, by_name=True, by_alias=False)


def assemble(cls: type[StateModel], values: dict[str, Any], touched: Any, freezer: Freezer | None = None) -> Any:
    """An instance of `cls` from values of which only the `touched` ones are yet to be frozen and validated.

    Raises StateValueError with the path of a value that does not fit, and for names that are not fields.
    """
    freezer = freezer or Freezer()
    shapes = cls.__refold_shapes__
    for name in touched:
        shape = shapes.get(name)
        if shape is None:
            raise StateValueError(f"{cls.__name__} has no field {name!r}; its fields are {', '.join(shapes)}")
        try:
            values[name] = shape.freeze(values[name], freezer)
        except StateValueError as error:
            raise error.under(name) from None
    if cls.__refold_revalidates__ == "whole":
        return validated(cls, dict(values))
    instance = cls.__new__(cls)
    object.__setattr__(instance, "__dict__", values)
    object.__setattr__(instance, "__pydantic_fields_set__", set(shapes))
    object.__setattr__(instance, "__pydantic_extra__", None)
    object.__setattr__(instance, "__pydantic_private__", None)
    instance._check()
    if cls.__refold_revalidates__ == "after":
        return validated(cls, instance)
    return instance


def validated(cls: type[StateModel], value: Any) -> Any:
    """The finished value once more through the class's own model validators."""
    try:
        if isinstance(value, StateModel):
            for decorator in cls.__pydantic_decorators__.model_validators.values():
                value = decorator.func(value)  # type: ignore[call-arg]
            return _freeze_fields(value)
        return cls.model_validate(value)
    except ValidationError as error:
        raise StateValueError(first_problem(error)) from None
    except (ValueError, AssertionError) as error:
        raise StateValueError(f"{cls.__name__}: {error}") from error


class StateSchema(StateModel):
    """What a run knows: subclass it with fields of your own. `max_steps > 0` and `max_steps >= current_step` always hold.

    `task`, `current_step` and `max_steps` are written by the engine alone. Override `schema_version` with a higher number
    when the fields change, and register how older documents become newer ones with `migration`.
    """

    schema_version: int = 1
    task: str = ""
    current_step: int = 0
    max_steps: int = 20
    final_result: str | None = None
    stop_reason: StopReason | None = None
    metadata: dict[str, Any] = {}
    metrics: dict[str, Any] = {}

    __refold_engine_fields__: ClassVar[frozenset[str]] = frozenset(
        {"task", "current_step", "max_steps", "schema_version"}
    )
    __refold_migrations__: ClassVar[dict[int, tuple[int, Migration]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__refold_migrations__ = dict(cls.__refold_migrations__)

    def _check(self) -> None:
        current, limit = self.__dict__["current_step"], self.__dict__["max_steps"]
        if limit <= 0:
            raise StateValueError(f"max_steps must be above 0, got {limit}").under("max_steps")
        if not 0 <= current <= limit:
            raise StateValueError(f"current_step must be from 0 to max_steps ({limit}), got {current}").under(
                "current_step"
            )

    def set_stop(self, reason: StopReason | str, final_result: str | None = None) -> None:
        """Ends the run after this step, for `reason`; call it on the draft, inside `reduce`.

        Raises ValueError for a text that is not a StopReason.
        """
        self.stop_reason = StopReason.of(reason)
        if final_result is not None:
            self.final_result = final_result

    @classmethod
    def migration(cls, from_version: int, to_version: int | None = None) -> Callable[[Migration], Migration]:
        """Registers a function that turns a document of `from_version` into one of `to_version` (the next, if not given)."""
        target = from_version + 1 if to_version is None else to_version
        if target <= from_version:
            raise ValueError(f"a migration leads to a higher version, not from {from_version} to {target}")

        def register(migrate: Migration) -> Migration:
            cls.__refold_migrations__[from_version] = (target, migrate)
            return migrate

        return register

    @classmethod
    def migrate(cls, doc: Mapping[str, Any]) -> Document:
        """The document in this class's schema version; raises StateMigrationError where no migrations lead there."""
        current: Document = dict(doc)
        wanted: int = cls.model_fields["schema_version"].default
        seen: deque[int] = deque()
        while (version := current.get("schema_version", 1)) != wanted:
            step = cls.__refold_migrations__.get(version)
            if step is None or version in seen:
                trail = " -> ".join(str(v) for v in [*seen, version])
                raise StateMigrationError(
                    f"no migration leads {cls.__name__} from schema_version {trail} to {wanted}; "
                    f"register one with @{cls.__name__}.migration({version})"
                    if not isinstance(version, int) or version < wanted
                    else f"the document is of schema_version {version}, newer than this {cls.__name__} ({wanted})"
                )
            seen.append(version)
            current = {**step[1](thaw(current)), "schema_version": step[0]}
        return current

    @classmethod
    def from_dict(cls, doc: Mapping[str, Any]) -> Self:
        """The state of a document, brought to this class's schema version first.

        Raises StateValueError for unknown fields and values that do not fit, StateMigrationError for versions.
        """
        return super().from_dict(cls.migrate(doc))


def json_value(value: Any, label: str) -> Any:
    """Any value in frozen JSON form; raises StateValueError with the path of what JSON cannot carry."""
    return AnyShape(label).freeze(value, Freezer())
