"""Drafts of models: instances that answer as the user's own class while every field can be written."""

from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any, NoReturn

from .draft import DRAFTERS, Node, Scope, draft_of
from .errors import DraftExpiredError, EngineOwnedFieldError
from .resolve import resolve_model
from .shape import DRAFT_RESOLVERS
from .state import StateModel


class _Field:
    """The data descriptor through which a model draft's field is read and written."""

    __slots__ = ("engine_owned", "name")

    def __init__(self, name: str, engine_owned: bool) -> None:
        self.name = name
        self.engine_owned = engine_owned

    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        if owner is None:
            raise AttributeError(self.name)
        values = owner.__dict__
        node: Node = owner._refold_node
        try:
            value = values[self.name]
        except KeyError:
            raise DraftExpiredError(f"{node.shape.__name__}.{self.name}") from None
        draft = draft_of(value, node.scope)
        if draft is None:
            return value
        values[self.name] = draft
        node.touched.add(self.name)
        return draft

    def __set__(self, owner: Any, value: Any) -> None:
        node: Node = owner._refold_node
        if self.name not in owner.__dict__:
            raise DraftExpiredError(f"{node.shape.__name__}.{self.name}")
        if self.engine_owned and node.base is not None:
            raise EngineOwnedFieldError(self.name)
        owner.__dict__[self.name] = value
        node.touched.add(self.name)


def _draft_setattr(self: Any, name: str, value: Any) -> None:
    cls = self._refold_node.shape
    if name not in cls.__refold_shapes__:
        raise AttributeError(f"{cls.__name__} has no field {name!r}; its fields are {', '.join(cls.__refold_shapes__)}")
    object.__setattr__(self, name, value)


def _draft_delattr(self: Any, name: str) -> NoReturn:
    raise AttributeError(f"a field cannot be deleted: {self._refold_node.shape.__name__}.{name}")


def _draft_copy(self: Any, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
    """A new draft with the same values (as a plain object's shallow copy shares them), and the updates."""
    node: Node = self._refold_node
    for name in node.shape.__refold_shapes__:
        getattr(self, name)
    values = deepcopy(self.__dict__) if deep else dict(self.__dict__)
    values.update(update or {})
    copied = _new_model_draft(node.shape, values, Node(None, node.shape, node.scope))
    copied._refold_node.touched.update(values)
    return copied


@cache
def _draft_class(cls: type[StateModel]) -> type:
    """The class of a model's drafts: a subclass made without pydantic's metaclass, which answers the user's class.

    Its instances have a complete `__dict__`, so that dumps see every field; data descriptors stand before it.
    """
    owned = getattr(cls, "__refold_engine_fields__", frozenset())
    members: dict[str, Any] = {name: _Field(name, name in owned) for name in cls.__refold_shapes__}
    members |= {
        "__slots__": ("_refold_node",),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__class__": property(lambda self: cls),
        "__setattr__": _draft_setattr,
        "__delattr__": _draft_delattr,
        "__copy__": _draft_copy,
        "__deepcopy__": lambda self, memo=None: _draft_copy(self, deep=True),
        "model_copy": _draft_copy,
    }
    drafted = type.__new__(type(cls), cls.__name__, (cls,), members)
    DRAFT_RESOLVERS[drafted] = resolve_model
    DRAFTERS[drafted] = lambda value, scope: None
    return drafted


def _new_model_draft(cls: type[StateModel], values: dict[str, Any], node: Node) -> Any:
    drafted = _draft_class(cls)
    draft = drafted.__new__(drafted)
    object.__setattr__(draft, "__dict__", values)
    object.__setattr__(draft, "_refold_node", node)
    object.__setattr__(draft, "__pydantic_fields_set__", set(values))
    object.__setattr__(draft, "__pydantic_extra__", None)
    object.__setattr__(draft, "__pydantic_private__", None)
    node.scope.drafts.append(draft)
    return draft


def draft_model(base: StateModel, scope: Scope) -> Any:
    """A draft of a frozen model."""
    return _new_model_draft(type(base), dict(base.__dict__), Node(base, type(base), scope))


DRAFTERS[StateModel] = draft_model
