"""The state as a tree that marks the step's changes.

Branches are made when they are opened.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from rich.text import Text
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from ....traces import Change
from ...render.step_view import MARKS
from ...render.text import brief, clean, value_text

_MOST = 200
"""The largest number of members shown of one value."""
_OPENED = 20
"""The largest number of changes whose branches are opened."""


class StateTree(Tree[tuple[str, Any]]):
    """A state; a node's data is its JSON Pointer and value."""

    DEFAULT_CSS = "StateTree { width: 1fr; border-left: solid $panel; }"

    def __init__(self) -> None:
        super().__init__("state", ("", {}), id="state")
        self.guide_depth = 2
        self._changes: dict[str, Change] = {}
        self._above: set[str] = set()
        self._open: set[str] = set()
        self._picked = ""

    @property
    def path(self) -> str:
        """The path of the node under the cursor, kept during a rebuild."""
        node = self.cursor_node
        return self._picked or (node.data[0] if node is not None and node.data is not None else "")

    def show(self, document: Any, changes: tuple[Change, ...]) -> None:
        """Show a state and its changes; open branches stay open."""
        self._picked = self.path
        self._changes = {change.path: change for change in changes if change.op != "remove"}
        self._above = {above for change in changes for above in _above(change.path)}
        opened = self._open | {above for path in islice(self._changes, _OPENED) for above in _above(path)}
        self.root.data = ("", document)
        self.root.remove_children()
        self._fill(self.root, opened)
        self.root.expand()
        self.call_after_refresh(self._pick)  # only then do nodes have lines, which the cursor needs

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[tuple[str, Any]]) -> None:
        """Make the members of a branch when it is opened."""
        if event.node is not self.root and not event.node.children:
            self._open.add((event.node.data or ("",))[0])
            self._fill(event.node, set())

    def on_tree_node_collapsed(self, event: Tree.NodeCollapsed[tuple[str, Any]]) -> None:
        """Note that a branch was closed."""
        self._open.discard((event.node.data or ("",))[0])

    def _fill(self, node: TreeNode[tuple[str, Any]], opened: set[str]) -> None:
        above, value = node.data or ("", {})
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for name, member in islice(members, _MOST):
            path = f"{above}/{str(name).replace('~', '~0').replace('/', '~1')}"
            label = self._label(path, str(name), member)
            if not isinstance(member, dict | list) or not member:
                node.add_leaf(label, (path, member))
                continue
            branch = node.add(label, (path, member))
            if path in opened:
                self._fill(branch, opened)
                branch.expand()
        if len(value) > _MOST:
            node.add_leaf(Text(f"and {len(value) - _MOST:,} more", "dim"), (above, None))

    def _label(self, path: str, name: str, member: Any) -> Text:
        change = self._changes.get(path)
        mark, style = MARKS[change.op] if change is not None else ("·", "yellow") if path in self._above else (" ", "")
        text = Text(f"{mark} ", style).append(brief(clean(name), 60), "bold")
        if isinstance(member, dict | list):
            return text.append(f"  {len(member):,} {'members' if isinstance(member, dict) else 'items'}", "dim")
        return text.append(f"  {brief(value_text(member), 200)}")

    def _pick(self) -> None:
        path, self._picked = self._picked, ""
        target = next((node for node in _walk(self.root) if (node.data or ("",))[0] == path), None) if path else None
        if target is not None:
            self.move_cursor(target)


def _above(path: str) -> Iterator[str]:
    """Yield the paths above a path, without the root."""
    while path.count("/") > 1:
        path = path.rpartition("/")[0]
        yield path


def _walk(node: TreeNode[tuple[str, Any]]) -> Iterator[TreeNode[tuple[str, Any]]]:
    for child in node.children:
        yield child
        yield from _walk(child)
