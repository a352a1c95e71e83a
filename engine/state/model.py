"""The typed state of a run: frozen models whose every value survives its JSON form."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, cast

import orjson
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import CoreSchema, core_schema

from ..endings import StopReason
from ..errors import FrozenStateError, StateDefinitionError, StateValueError
from .containers import DRAFT_RESOLVERS, AnyShape, Shape
from .fields import field_shapes, holds_scalars, plain_types, refuse_types
from .freezer import Freezer
from .frozen import BY_IDENTITY, FrozenDict, FrozenSet, frozen_dict, thaw
from .migrations import Document, Migration, migrated
from .scalars import exact_scalar, first_problem
from .serialization import dump, json_default


def _completed(cls: type["StateModel"]) -> tuple[Any, ...]:
    """The plan of a class that was left incomplete, as it named types that were defined later."""
    cls.model_rebuild()
    if cls.__refold_plan__ is None:
        raise StateDefinitionError(cls.__name__, "it names types that are defined later; call model_rebuild() first")
    return cls.__refold_plan__


class _Freezing:
    """Freezes what pydantic has just validated; runs for every state model that comes to be.

    It stands within the model's schema, where an instance that is passed along does not come by again; or around it,
    where the class has model validators of its own, which see and may change what is not frozen yet.
    """

    __slots__ = ("cls",)

    def __init__(self, cls: type["StateModel"]) -> None:
        self.cls = cls

    def fields(self, made: tuple[dict[str, Any], Any, Any]) -> tuple[dict[str, Any], Any, Any]:
        """The values of an instance to be; beside them stand extra ones, of which there are none, and what was set."""
        values, extra, names = made
        _freeze_values(self.cls, values)
        return frozen_dict(values, self.cls), extra, FrozenSet(names)

    def instance(self, made: Any) -> Any:
        """An instance, which may be of a subclass."""
        values = made.__dict__
        if type(values) is not FrozenDict:
            _freeze_values(type(made), values)
            _put_fields(made, frozen_dict(values, type(made)))
            _put_fields_set(made, FrozenSet(made.__pydantic_fields_set__))
        return made

    def added_to(self, schema: Any) -> CoreSchema:
        """A class's schema, with this in it once, also where it is built into that of another class."""
        function = self.fields if schema["type"] == "model" and not _has_model_validators(self.cls) else self.instance
        holder = schema if function == self.instance else schema["schema"]
        known = holder.get("function", {}).get("function")
        if isinstance(getattr(known, "__self__", None), _Freezing):
            return cast(CoreSchema, schema)
        wrapped = core_schema.no_info_after_validator_function(function, holder)
        return wrapped if holder is schema else cast(CoreSchema, {**schema, "schema": wrapped})


def _take_names(schema: Any) -> None:
    """Lets a model within a wrap validator be validated by its fields' names.

    Before 2.14, pydantic forgets `by_name=True` on the way through the validator's handler.
    """
    wrapped = False
    while "schema" in schema and schema["type"] != "model":
        wrapped = wrapped or schema["type"] == "function-wrap"
        schema = schema["schema"]
    if wrapped and schema["type"] == "model":
        schema["config"] = {**schema.get("config", {}), "validate_by_name": True, "validate_by_alias": True}


def _has_model_validators(cls: type[BaseModel]) -> bool:
    return bool(cls.__pydantic_decorators__.model_validators)


def _freeze_values(cls: type["StateModel"], values: dict[str, Any]) -> None:
    """Freezes the values of an instance's fields in their place."""
    name = ""
    try:
        scalars, others, check, _, _ = cls.__refold_plan__ or _completed(cls)
        for name in scalars:
            value = values[name]
            kind = type(value)
            if not (value.isascii() if kind is str else value is None or kind is bool):
                exact_scalar(value)
        freezer: Freezer | None = None
        for name, shape, plain in others:
            value = values[name]
            kind = type(value)
            if kind not in plain or (kind is str and not value.isascii()):
                freezer = freezer or Freezer()
                values[name] = shape.freeze(value, freezer)
    except StateValueError as error:
        raise error.under(name) from None
    if check is not None:
        check(values)


_CONFIG = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())
# Named, so that type checkers do not see `frozen` and let a reducer assign to the fields of its draft.


class StateModel(BaseModel):
    """The base of every model inside a state: frozen at every depth, strict, with no unknown fields.

    Lists and dicts of an instance are frozen when it is made. Inside `reduce`, what is reached through the draft can be
    changed in place; elsewhere `model_copy(update=…)` gives a changed, validated copy.

    Raises:
        StateDefinitionError: when a subclass declares a field that JSON cannot carry there and back unchanged.
    """

    model_config = _CONFIG

    __refold_shapes__: ClassVar[dict[str, Shape]] = {}
    __refold_plan__: ClassVar[tuple[Any, ...] | None] = None
    __refold_engine_fields__: ClassVar[frozenset[str]] = frozenset()
    __refold_check__: ClassVar[Callable[[dict[str, Any]], None] | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__refold_plan__ = None

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        if cls.__base__ is BaseModel:
            return
        shapes = cls.__refold_shapes__ = field_shapes(cls, StateModel)
        scalars = tuple(name for name, shape in shapes.items() if holds_scalars(shape))
        others = tuple((name, shape, plain_types(shape)) for name, shape in shapes.items() if not holds_scalars(shape))
        modes = {v.info.mode for v in cls.__pydantic_decorators__.model_validators.values()}
        validators = "" if not modes else "after" if modes == {"after"} else "whole"
        cls.__refold_plan__ = scalars, others, cls.__refold_check__, FrozenSet(shapes), validators

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        try:
            schema = handler(source)
        except PydanticSchemaGenerationError:
            refuse_types(cls, StateModel)
            raise
        _take_names(schema)
        return _Freezing(cls).added_to(schema)

    if not TYPE_CHECKING:  # so that type checkers see the __init__ of a class's fields

        def __init__(self, /, **data: Any) -> None:
            held = self.__dict__
            if held or type(held) is FrozenDict:  # called again, pydantic's own would fill the finished instance anew
                raise FrozenStateError(self.__class__.__name__, "__init__()")
            if self.__pydantic_validator__.validate_python(data, self_instance=self) is not self:
                super().__init__(**data)  # which warns of a validator that gives another instance

        __init__.__pydantic_base_init__ = True  # pydantic takes it as its own, and so need not call it

        def __eq__(self, other: object) -> bool:
            if BY_IDENTITY.get():
                return False
            if other.__class__ is self.__class__:  # with one call a level, as models may nest deep
                return dict.__eq__(self.__dict__, other.__dict__)
            return super().__eq__(other)

    def __setstate__(self, state: dict[Any, Any]) -> NoReturn:
        raise FrozenStateError(self.__class__.__name__, "__setstate__()")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise FrozenStateError(f"{type(self).__name__}.{name}", "assignment")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenStateError(f"{type(self).__name__}.{name}", "deletion")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_json, (self.__class__, dump(self))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with the fields of `update` changed and validated; raises StateValueError for a bad one."""
        if not update:
            return self
        copied: Self = assemble(type(self), {**self.__dict__, **update}, update)
        return copied

    def copy(self, **kwargs: Any) -> NoReturn:
        """Not available: pydantic's old `copy` skips validation. Use `model_copy(update=…)`."""
        raise TypeError("a state model has no copy(); use model_copy(update={...}), which validates")

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> NoReturn:  # type: ignore[override]
        """Not available: a state that skipped validation could not be replayed. Call the class instead."""
        raise TypeError(f"model_construct skips validation, which a state cannot do without; call {cls.__name__}(...)")

    @classmethod
    def __refold_coerce__(cls, value: Any, freezer: Freezer) -> Any:
        """An instance of exactly this class from a draft or a plain dict; called by the shapes."""
        if isinstance(value, StateModel) and (resolver := DRAFT_RESOLVERS.get(type(value))):
            value = resolver(value, None, freezer)
        if type(value) is cls:
            return value
        if isinstance(value, dict):
            try:
                return cls.model_validate(thaw(value), by_name=True, by_alias=True)
            except ValidationError as error:
                raise StateValueError(first_problem(error)) from None
        hint = ""
        if isinstance(value, cls):
            hint = f"; the fields of {type(value).__name__} would be lost on reload, name both in a tagged union"
        raise StateValueError(f"expected {cls.__name__}, got {type(value).__name__}{hint}")

    def to_dict(self) -> Document:
        """The state's document: plain JSON values under Python field names."""
        document: Document = orjson.loads(dump(self))
        return document

    @classmethod
    def from_dict(cls, doc: Mapping[str, Any]) -> Self:
        """The state of a document; raises StateValueError for unknown fields and values that do not fit."""
        try:
            return cls.model_validate_json(dump(doc), by_name=True, by_alias=False)
        except ValidationError as error:
            raise StateValueError(f"not a {cls.__name__}: {first_problem(error)}") from None


def _from_json(cls: type[StateModel], data: bytes) -> StateModel:
    return cls.model_validate_json(data, by_name=True, by_alias=False)


def assemble(cls: type[StateModel], values: dict[str, Any], touched: Iterable[str]) -> Any:
    """An instance of `cls` from values of which only the `touched` ones are yet to be frozen and validated.

    Raises StateValueError with the path of a value that does not fit, and for names that are not fields.
    """
    freezer = Freezer()
    shapes = cls.__refold_shapes__
    for name in touched:
        if name not in shapes:
            raise StateValueError(f"{cls.__name__} has no field {name!r}; its fields are {', '.join(shapes)}")
        try:
            values[name] = shapes[name].freeze(values[name], freezer)
        except StateValueError as error:
            raise error.under(name) from None
    return built(cls, values)


_put_fields = BaseModel.__dict__["__dict__"].__set__
_put_fields_set = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_put_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_put_private = BaseModel.__dict__["__pydantic_private__"].__set__


def built(cls: type[StateModel], values: dict[str, Any]) -> Any:
    """An instance of `cls` from frozen values, which it takes over; runs the class's model validators and no others."""
    _, _, check, fields_set, validators = cls.__refold_plan__ or _completed(cls)
    if validators == "whole":
        return _validated(cls, values)
    instance = object.__new__(cls)
    _put_fields(instance, frozen_dict(values, cls))
    _put_fields_set(instance, fields_set)
    _put_extra(instance, None)
    _put_private(instance, None)
    if check is not None:
        check(values)
    return _validated(cls, instance) if validators else instance


def _validated(cls: type[StateModel], value: Any) -> Any:
    """The finished fields, or the finished instance, once more through the class's own validators."""
    try:
        return cls.model_validate(value, by_name=True, by_alias=False)
    except ValidationError as error:
        raise StateValueError(first_problem(error)) from None


def _limits_hold(values: dict[str, Any]) -> None:
    """Raises StateValueError unless a step is still within the limit of steps."""
    current, limit = values["current_step"], values["max_steps"]
    if limit <= 0:
        raise StateValueError(f"max_steps must be above 0, got {limit}").under("max_steps")
    if not 0 <= current <= limit:
        raise StateValueError(f"current_step must be from 0 to max_steps ({limit}), got {current}").under(
            "current_step"
        )


class StateSchema(StateModel):
    """What a run knows: subclass it with fields of your own.

    `max_steps > 0` and `max_steps >= current_step` always hold. `task`, `current_step` and `max_steps` are written by
    the engine alone. Override `schema_version` with a higher number when the fields change, and register with
    `migration` how older documents become newer ones.
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
    __refold_check__ = _limits_hold

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__refold_migrations__ = dict(cls.__refold_migrations__)

    def set_stop(self, reason: StopReason | str, final_result: str | None = None) -> None:
        """Ends the run after this step, for `reason`; call it on the draft, inside `reduce`.

        Raises ValueError for a text that is not a StopReason.
        """
        self.stop_reason = StopReason.of(reason)
        if final_result is not None:
            self.final_result = final_result

    @classmethod
    def migration(cls, from_version: int, to_version: int | None = None) -> Callable[[Migration], Migration]:
        """Registers a function from a document of `from_version` to one of `to_version` (by default, the next)."""
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
        wanted: int = cls.model_fields["schema_version"].default
        return migrated(doc, wanted, cls.__refold_migrations__, cls.__name__)

    @classmethod
    def from_dict(cls, doc: Mapping[str, Any]) -> Self:
        """The state of a document, brought to this class's schema version first.

        Raises StateValueError for unknown fields and values that do not fit, StateMigrationError for versions.
        """
        return super().from_dict(cls.migrate(doc))


def json_value(value: Any, label: str) -> Any:
    """Any value in frozen JSON form; raises StateValueError with the path of what JSON cannot carry."""
    return _any_shape(label).freeze(value, Freezer())


_any_shape = lru_cache(maxsize=512)(AnyShape)


__all__ = ["StateModel", "StateSchema", "assemble", "built", "dump", "json_default", "json_value"]
