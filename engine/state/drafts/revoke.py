"""Revoked drafts: any use after `reduce` raises DraftExpiredError.

A kept draft would otherwise pass for a state. `expire` changes each draft's class to one whose methods all raise, and
empties the draft, for code in C that calls no methods.
"""

from functools import cache
from typing import Any, ClassVar, NoReturn

from ....errors import DraftExpiredError
from ..freezer import Freezer
from ..frozen import FrozenDict, FrozenList
from ..model import StateModel
from ..shapes.containers import DRAFT_RESOLVERS
from .draft import ExpiredNode, Node, Scope
from .draft_dict import DraftDict
from .draft_list import DraftList
from .draft_model import ModelDraft

# Methods that Python needs to name, show or hold an expired draft, and to change its class.
_LEFT_ALONE = frozenset(
    [
        "__class__",
        "__new__",
        "__init__",
        "__init_subclass__",
        "__subclasshook__",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__dir__",
        "__repr__",
        "__str__",
        "__format__",
        "__sizeof__",
        "__hash__",
        "__class_getitem__",
        "__doc__",
        "__getstate__",
    ]
)


class _Rest:
    """The one item of an expired list or dict, whose use raises.

    Code in C, such as orjson and `==`, reads lists and dicts past their methods, but meets this item, and raises
    DraftExpiredError. The item looks like a state model (`__refold_shapes__`), so that `serialization` reads its
    `__dict__`, which raises.
    """

    __refold_shapes__: ClassVar[tuple[str, ...]] = ()

    @property
    def __dict__(self) -> NoReturn:  # type: ignore[override]
        raise DraftExpiredError("a state")

    def __eq__(self, other: object) -> NoReturn:
        raise DraftExpiredError("a state")

    __hash__ = None  # type: ignore[assignment]


_REST = _Rest()


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise DraftExpiredError(getattr(self.meta.shape, "label", "a state"))


def _shown(self: Any) -> str:
    return f"<expired draft of {getattr(self.meta.shape, 'label', 'a state')}>"


def _expired_class(base: type) -> Any:
    """Return a class with the layout of `base` whose methods raise."""
    names = [n for n in dir(base) if callable(getattr(base, n)) and n not in _LEFT_ALONE]
    members = {"__slots__": vars(base)["__slots__"], **dict.fromkeys(names, _refuse), "__repr__": _shown}
    return type(f"Expired{base.__name__}", (base.__mro__[1],), members)


_EXPIRED_LIST = _expired_class(DraftList)
_EXPIRED_DICT = _expired_class(DraftDict)


class _ExpiredModel(ModelDraft):
    """The base of expired drafts of models: all but `__class__` raises."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        node: Node = object.__getattribute__(self, "_refold_node")
        if name == "__class__":
            return node.shape
        raise DraftExpiredError(f"{node.shape.__name__}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self.__getattribute__(name)

    def __delattr__(self, name: str) -> NoReturn:
        raise DraftExpiredError(f"{self.__class__.__name__}.{name}")

    def __eq__(self, other: object) -> NoReturn:
        raise DraftExpiredError(self.__class__.__name__)

    def __iter__(self) -> NoReturn:
        raise DraftExpiredError(self.__class__.__name__)

    __copy__ = __deepcopy__ = __reduce_ex__ = __iter__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<expired draft of {self.__class__.__name__}>"

    __str__ = __repr__


@cache
def _expired_model_class(cls: type[StateModel]) -> type:
    members = {"__slots__": ("_refold_node",), "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    expired = type.__new__(type(cls), cls.__name__, (_ExpiredModel, cls), members)
    DRAFT_RESOLVERS[expired] = _refuse_model
    return expired


def _refuse_list(draft: Any, shape: Any, freezer: Freezer) -> NoReturn:
    _refuse(draft)


def _refuse_model(draft: Any, shape: Any, freezer: Freezer) -> NoReturn:
    raise DraftExpiredError(draft.__class__.__name__)


DRAFT_RESOLVERS[_EXPIRED_LIST] = DRAFT_RESOLVERS[_EXPIRED_DICT] = _refuse_list
_change_class = object.__dict__["__class__"].__set__


def expire(scope: Scope) -> None:
    """Revoke the drafts of a `reduce` that has ended.

    Drafts that have become frozen values themselves stay.
    """
    for draft in scope.drafts:
        kind = type(draft)
        if kind is FrozenList or kind is FrozenDict:  # it has become the frozen value itself
            continue
        if kind is DraftList:
            list.__setitem__(draft, slice(None), (_REST,))
            draft.meta.base = None
            draft.meta = ExpiredNode(draft.meta.shape)
            draft.__class__ = _EXPIRED_LIST
        elif kind is DraftDict:
            dict.clear(draft)
            dict.__setitem__(draft, "", _REST)
            draft.meta.base = None
            draft.meta = ExpiredNode(draft.meta.shape)
            draft.__class__ = _EXPIRED_DICT
        else:
            node: Node = draft._refold_node
            node.base = None
            object.__setattr__(draft, "__dict__", {})
            _change_class(draft, _expired_model_class(node.shape))
    scope.within.clear()
    scope.drafts.clear()  # otherwise the cycle of drafts and scope keeps the old state until garbage collection
