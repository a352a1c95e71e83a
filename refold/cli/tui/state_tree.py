"""The state as a tree that marks the step's changes.

Branches are made when they are opened.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from rich.text import Text
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from ...traces import Change
from ..render.text import brief, clean, value_text

_MOST = 200
"""The largest number of members shown of one value."""
_OPENED = 20
"""The largest number of changes whose branches are opened."""
_MARKS = {"add": ("+", "green"), "remove": ("−", "red"), "replace": ("~", "yellow")}


class StateTree(Tree[str]):
    """A state; each node's data is its path, a JSON Pointer."""

    DEFAULT_CSS = "StateTree { width: 1fr; border-left: solid $panel; }"

    def __init__(self) -> None:
        super().__init__("state", "", id="state")
        self.auto_expand = True
        self.guide_depth = 2
        self.only_changes = True
        self._document: Any = None
        self._changes: tuple[Change, ...] = ()
        self._there: dict[str, Change] = {}
        """The changes of values that are in the state, without removed values."""
        self._above: set[str] = set()
        self._opened: set[str] = set()
        self._pending = ""

    @property
    def path(self) -> str:
        """The path of the node under the cursor.

        During a rebuild, it is the path of the previous node.
        """
        if self._pending:
            return self._pending
        node = self.cursor_node
        return node.data or "" if node is not None else ""

    def show(self, document: Any, changes: tuple[Change, ...]) -> None:
        """Show a state and its changes; open branches stay open."""
        picked = self.path
        self._document = document
        self._changes = changes
        there = [change for change in changes if change.op != "remove"]
        self._there = {change.path: change for change in there}
        self._above = {above for change in changes for above in _above(change.path)}
        opened = self._opened | {a for path in islice(self._there, _OPENED) for a in _above(path)}
        self.root.remove_children()
        self.root.set_label(Text("what changed" if self.only_changes else "state", "bold"))
        if self.only_changes:
            self._fill_changes()
        else:
            self._fill(self.root, opened)
        self.root.expand()
        self._pending = picked
        self.call_after_refresh(self._pick)  # only then do nodes have lines, which the cursor needs

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[str]) -> None:
        """Make the members of a branch when it is opened."""
        node = event.node
        if node is not self.root and not node.children:
            self._opened.add(node.data or "")
            self._fill(node, set())

    def on_tree_node_collapsed(self, event: Tree.NodeCollapsed[str]) -> None:
        """Remove the members of a closed branch."""
        self._opened.discard(event.node.data or "")

    def _fill_changes(self) -> None:
        if not self._changes:
            self.root.add_leaf(Text("nothing", "dim"), "")
        for change in self._changes[:_MOST]:
            path = change.path
            mark, style = _MARKS[change.op]
            label = Text(f"{mark} ", style).append(clean(path) or "/", "bold")
            node = self.root.add(label, path, expand=True)
            if change.op != "add":
                node.add_leaf(Text("− ", "red").append(brief(value_text(change.old), 400)), path)
            if change.op != "remove":
                node.add_leaf(Text("+ ", "green").append(brief(value_text(change.new), 400)), path)
        self._tell_rest(self.root, len(self._changes))

    def _fill(self, node: TreeNode[str], opened: set[str]) -> None:
        value = self._value(node.data or "")
        for name, member in islice(_members(value), _MOST):
            path = f"{node.data or ''}/{name.replace('~', '~0').replace('/', '~1')}"
            if isinstance(member, dict | list) and member:
                branch = node.add(self._label(path, name, member), path)
                if path in opened:
                    self._fill(branch, opened)
                    branch.expand()
            else:
                node.add_leaf(self._label(path, name, member), path)
        self._tell_rest(node, len(value) if isinstance(value, dict | list) else 0)

    def _tell_rest(self, node: TreeNode[str], number: int) -> None:
        if number > _MOST:
            node.add_leaf(Text(f"and {number - _MOST:,} more", "dim"), node.data or "")

    def _label(self, path: str, name: str, member: Any) -> Text:
        change = self._there.get(path)
        mark, style = _MARKS[change.op] if change is not None else ("·", "yellow") if path in self._above else (" ", "")
        text = Text(f"{mark} ", style).append(brief(clean(name), 60), "bold")
        if isinstance(member, dict | list):
            what = "members" if isinstance(member, dict) else "items"
            return text.append(f"  {len(member):,} {what}", "dim")
        return text.append(f"  {brief(value_text(member), 200)}")

    def _value(self, path: str) -> Any:
        value = self._document
        for part in path.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            value = value[int(name)] if isinstance(value, list) else value[name]
        return value

    def _pick(self) -> None:
        path, self._pending = self._pending, ""
        found = next((node for node in _walk(self.root) if node.data == path), None) if path else None
        if found is not None:
            self.move_cursor(found)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(index), member) for index, member in enumerate(value))


def _above(path: str) -> Iterator[str]:
    """Yield the paths above a path, without the root."""
    while path.count("/") > 1:
        path = path.rpartition("/")[0]
        yield path


def _walk(node: TreeNode[str]) -> Iterator[TreeNode[str]]:
    for child in node.children:
        yield child
        yield from _walk(child)
