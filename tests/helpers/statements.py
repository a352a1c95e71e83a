"""The statements of a module, wherever in it they stand: a tenth of its nodes, and all where an import or a name is."""

import ast
from collections.abc import Iterator

_HOLD_STATEMENTS = ("body", "handlers", "cases", "orelse", "finalbody")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A node and the statements inside it, with the handlers and cases that hold some."""
    yield node
    for name in _HOLD_STATEMENTS:
        inside = getattr(node, name, None)
        if isinstance(inside, list):  # a lambda's body is an expression
            for each in inside:
                yield from statements(each)
