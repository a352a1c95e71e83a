"""Tools that share state: a class whose marked methods are tools."""

from collections.abc import Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, PrivateAttr
from pydantic_core import PydanticUndefined

from .context import Config
from .method import ToolMethod
from .reentrant_context import Entry, make_reentrant
from .tool_class import Tool


class Toolset(BaseModel):
    """A group of tools that share state: each method marked with `tool_method` is one.

    A field may have a `Config` for its default: a setting that whoever makes the toolset may give.

    State is held in fields, in private attributes (`PrivateAttr`), or in attributes that an `__init__` of one's own
    sets, which need not call `super().__init__`. What is held there is not part of a run's state, and a replay does
    not see it: what a run depends on must be in the tools' results.

    A subclass with `__aenter__` and `__aexit__`, or with `__enter__` and `__exit__`, is entered before a run and left
    after it; entering it again while it is open gives what the first entering gave (the toolset, where that was
    None), and the last to leave leaves it. Raises TypeError for a class that has half a pair, or both kinds.

    A method that overrides a tool method without a mark of its own is a tool as the one before was.

    Attributes:
        variant: which of its tools it offers, by the `variants` of their marks; None stands for all of them.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    variant: str | None = None

    _refold_entry: Entry = PrivateAttr(default_factory=Entry)

    __eq__ = object.__eq__  # two toolsets with equal fields are still two, each with its own state
    __hash__ = object.__hash__

    if not TYPE_CHECKING:

        def __new__(cls, *args, **kwargs):
            """A toolset with its defaults, so that an `__init__` may go on from there."""
            made = super().__new__(cls)
            fields = {
                name: info.get_default(call_default_factory=True, validated_data={})
                for name, info in cls.model_fields.items()
                if not info.is_required()
            }
            private = {name: info.get_default() for name, info in cls.__private_attributes__.items()}
            private = {name: value for name, value in private.items() if value is not PydanticUndefined}
            for slot, value in (
                ("__dict__", fields),
                ("__pydantic_fields_set__", set()),
                ("__pydantic_extra__", None),
                ("__pydantic_private__", private),
            ):
                object.__setattr__(made, slot, value)
            return made

        def __init__(self, **fields):
            before = {name: value for name, value in self.__dict__.items() if name not in type(self).model_fields}
            super().__init__(**fields)
            self.__dict__.update(before)

        def __copy__(self):
            return _afresh(super().__copy__())

        def __deepcopy__(self, memo=None):
            return _afresh(super().__deepcopy__(memo))

        def __getattr__(self, name):
            """A private attribute with a factory, of a toolset whose own `__init__` calls no `super().__init__`."""
            info = type(self).__private_attributes__.get(name)
            private = self.__pydantic_private__
            if info is None or info.default_factory is None or private is None or name in private:
                return super().__getattr__(name)
            return private.setdefault(name, info.default_factory())

        def __setattr__(self, name, value):
            known = name in type(self).model_fields or name.startswith("_") or hasattr(type(self), name)
            if known:
                super().__setattr__(name, value)
            else:
                self.__dict__[name] = value

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Makes a field of each `Config` before pydantic looks: it would take the mark itself for a default."""
        for attribute, value in list(vars(cls).items()):
            if isinstance(value, Config):
                setattr(cls, attribute, value.as_field())
        super().__init_subclass__(**kwargs)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        _keep_overridden(cls)
        make_reentrant(cls, lambda toolset: cast(Entry, toolset._refold_entry))

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def get_tools(self, *, variant: str | None = None) -> list[Tool[..., Any]]:
        """The tools, bound to this toolset: those of the subclass first, each class's in the order they stand in.

        A variant given, or else the toolset's own, leaves those whose marks name it; methods whose marks name none
        are of the variant "all".
        """
        wanted = variant if variant is not None else self.variant
        return [
            cast("Tool[..., Any]", getattr(self, name))
            for name, method in _methods(type(self).__mro__).items()
            if wanted is None or wanted in method.variants
        ]


def discover_tools_on_obj(obj: Any) -> list[Tool[..., Any]]:
    """The tools of any object, bound to it: its methods that are marked with `tool_method`."""
    return [getattr(obj, name) for name in _methods(type(obj).__mro__)]


def _methods(classes: Iterable[type]) -> dict[str, ToolMethod[..., Any]]:
    """The tool methods of classes by their attributes' names; what one defines hides what those after it do."""
    found: dict[str, ToolMethod[..., Any]] = {}
    seen: set[str] = set()
    for base in classes:
        for name, member in vars(base).items():
            if name not in seen and isinstance(member, ToolMethod):
                found[name] = member
        seen.update(vars(base))
    return found


def _afresh(toolset: Toolset) -> Toolset:
    """A copy of a toolset is not entered because the other is."""
    toolset._refold_entry = Entry()
    return toolset


def _keep_overridden(cls: type) -> None:
    """Makes a tool method of each plain method that stands where a base class has one."""
    inherited = _methods(cls.__mro__[1:])
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and name in inherited:
            setattr(cls, name, inherited[name].overridden(member))
