"""Types as they are written, compared: whether what is of the one may stand where the other is asked for."""

import ast
import inspect
from collections.abc import Iterator
from typing import Any, TypeVar

ANY = "ANY"
WIDER = {
    "list": {"Sequence", "Iterable", "Collection"},
    "tuple": {"Sequence", "Iterable"},
    "dict": {"Mapping", "MutableMapping"},
    "frozenset": {"Iterable", "Collection"},
    "int": {"float"},
    "NoneType": {"None"},
    "Agent": {"RunsGoals"},
}
BARE = {"Tool", "ToolMethod", "Callable", "Pattern"}
"""What these are of is for type checkers."""


class Type:
    """A type as it is written: alternatives, each a name and what it is of."""

    def __init__(self, text: Any, types: dict[str, str]) -> None:
        self.types = types
        if isinstance(text, TypeVar):
            text = text.__bound__ or Any
        text = text if isinstance(text, str) else inspect.formatannotation(text)
        self.members = list(self._members(ast.parse(types.get(text, text).replace("~", ""), mode="eval").body))

    def _members(self, node: ast.expr) -> Iterator[tuple[str, list["Type"]]]:
        if isinstance(node, ast.BinOp):
            yield from (*self._members(node.left), *self._members(node.right))
            return
        head, args = (node.value, node.slice) if isinstance(node, ast.Subscript) else (node, None)
        name = head.attr if isinstance(head, ast.Attribute) else getattr(head, "id", ast.unparse(head))
        inner = [] if args is None else args.elts if isinstance(args, ast.Tuple) else [args]
        if name in ("Union", "Optional"):
            for each in inner:
                yield from self._members(each)
            if name == "Optional":
                yield "None", []
        elif name == "Annotated":
            yield from self._members(inner[0])
        elif name == "Literal":
            yield from ((repr(ast.literal_eval(each)), []) for each in inner)
        elif isinstance(head, ast.Constant) and isinstance(head.value, str):
            yield from self._members(ast.parse(head.value, mode="eval").body)
        elif name in self.types:
            yield from Type(self.types[name], {}).members
        else:
            yield name, [] if name in BARE else [Type(ast.unparse(each), self.types) for each in inner]

    def fits(self, other: "Type") -> bool:
        """Whether whatever is of this type may stand where the other is asked for."""
        return all(any(_fits(mine, theirs) for theirs in other.members) for mine in self.members)


def _fits(mine: tuple[str, list[Type]], theirs: tuple[str, list[Type]]) -> bool:
    if {mine[0], theirs[0]} & {ANY, "Any", "object"}:
        return True
    if mine[0] != theirs[0] and theirs[0] not in WIDER.get(mine[0], ()):
        return mine[0][0] in "'\"" and theirs[0] == "str"
    return not mine[1] or not theirs[1] or all(a.fits(b) for a, b in zip(mine[1], theirs[1], strict=False))
