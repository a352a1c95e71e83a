"""Makes the JSON Patch that leads from one document to another, looking only at what the two do not share."""

from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher
from itertools import compress, count
from operator import is_not
from typing import Any

import orjson

Op = dict[str, Any]
"""One operation of RFC 6902: `op`, `path`, and `value` where the operation has one."""

_ALIGN_LIMIT = 250_000
_REWRITE_FROM = 16


def _as_is(node: Any) -> Any:
    return node


def escape(token: str) -> str:
    """The token as it stands in a JSON Pointer (RFC 6901, section 3)."""
    if "~" in token or "/" in token:
        return token.replace("~", "~0").replace("/", "~1")
    return token


class Comparison:
    """How two trees are compared: what a node's JSON container is, and how a leaf is written.

    `view` maps a node to the dict or list that stands for it (identity for plain documents); `default` is what
    orjson calls for a leaf it does not know. Nodes that are the same object are taken as equal unseen.
    """

    def __init__(self, view: Callable[[Any], Any] = _as_is, default: Callable[[Any], Any] | None = None) -> None:
        self._view = view
        self._default = default

    def dump(self, node: Any) -> bytes:
        """The node as JSON bytes, keys in their order."""
        return orjson.dumps(
            node,
            self._default,
            orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS,
        )

    def same(self, old: Any, new: Any) -> bool:
        """Whether the two are the same JSON, types and key order included (1, 1.0 and true are three values)."""
        if old is new:
            return True
        kind = type(old)
        if kind is str or kind is int or kind is bool:
            return kind is type(new) and bool(old == new)
        if old is None or new is None:
            return False
        if kind is float:
            return type(new) is float and old.hex() == new.hex()
        return self.dump(old) == self.dump(new)

    def make_patch(self, old: Any, new: Any, path: str = "") -> list[Op]:
        """Operations that turn `old` into `new`, in the order in which they apply; [] when they are the same.

        Law: applying the result to the JSON of `old` gives the JSON of `new`, types and key order included.
        Values in the operations are the nodes of `new` themselves, not copies.
        """
        ops: list[Op] = []
        self._compare(old, new, path, ops)
        return ops

    def _compare(self, old: Any, new: Any, path: str, ops: list[Op]) -> None:
        if old is new:
            return
        before, after = self._view(old), self._view(new)
        if isinstance(before, dict) and isinstance(after, dict):
            self._compare_dicts(before, after, path, ops)
        elif isinstance(before, list) and isinstance(after, list):
            self._compare_lists(before, after, path, ops)
        elif not self.same(old, new):
            ops.append({"op": "replace", "path": path, "value": new})

    def _compare_dicts(self, old: dict[Any, Any], new: dict[Any, Any], path: str, ops: list[Op]) -> None:
        kept = _kept_in_order(old, new)
        for key in old:
            if key not in kept:
                ops.append({"op": "remove", "path": f"{path}/{key_token(key)}"})
        for key, value in new.items():
            if key in kept:
                self._compare(old[key], value, f"{path}/{key_token(key)}", ops)
            else:
                ops.append({"op": "add", "path": f"{path}/{key_token(key)}", "value": value})

    def _compare_lists(self, old: list[Any], new: list[Any], path: str, ops: list[Op]) -> None:
        head = next(compress(count(), map(is_not, old, new)), min(len(old), len(new)))
        room = min(len(old), len(new)) - head
        tail = 0
        while tail < room and self.same(old[-1 - tail], new[-1 - tail]):
            tail += 1
        middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
        mine: list[Op] = []
        for i1, i2, j1, j2 in reversed(self._blocks(middle_old, middle_new)):
            self._compare_block(old, new, (head + i1, head + i2, head + j1, head + j2), path, mine)
        if len(mine) > _REWRITE_FROM and len(self.dump(mine)) > len(self.dump(new)) + 64:
            mine = [{"op": "replace", "path": path, "value": new}]
        ops.extend(mine)

    def _compare_block(
        self, old: list[Any], new: list[Any], span: tuple[int, int, int, int], path: str, ops: list[Op]
    ) -> None:
        """One block that differs; blocks come last first, so that the indices before them still hold."""
        i1, i2, j1, j2 = span
        both = min(i2 - i1, j2 - j1)
        for i in range(i2 - 1, i1 + both - 1, -1):
            ops.append({"op": "remove", "path": f"{path}/{i}"})
        for offset in range(both, j2 - j1):
            token = "-" if i2 == len(old) else str(i1 + offset)
            ops.append({"op": "add", "path": f"{path}/{token}", "value": new[j1 + offset]})
        for offset in range(both):
            self._compare(old[i1 + offset], new[j1 + offset], f"{path}/{i1 + offset}", ops)

    def _blocks(self, old: Sequence[Any], new: Sequence[Any]) -> list[tuple[int, int, int, int]]:
        if not old or not new or len(old) == len(new) or len(old) * len(new) > _ALIGN_LIMIT:
            return [(0, len(old), 0, len(new))] if old or new else []
        matcher = SequenceMatcher(None, [self._mark(v) for v in old], [self._mark(v) for v in new], autojunk=False)
        return [(i1, i2, j1, j2) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]

    def _mark(self, node: Any) -> Hashable:
        return self.dump(node)


def key_token(key: Any) -> str:
    """The pointer token of a member's name: the text that JSON has for it."""
    return escape(key if type(key) is str else str(getattr(key, "value", key)))


def _kept_in_order(old: dict[Any, Any], new: dict[Any, Any]) -> set[Any]:
    """The members that can stay: the longest head of `new` whose names stand in `old` in the same order.

    What is removed and what is added again goes to the end, so every member after that head is added anew.
    """
    rank = {key: i for i, key in enumerate(old)}
    kept: set[Any] = set()
    last = -1
    for key in new:
        place = rank.get(key, -1)
        if place <= last:
            break
        kept.add(key)
        last = place
    return kept


def make_patch(old: Any, new: Any) -> list[Op]:
    """The JSON Patch that leads from document `old` to document `new` (see `Comparison.make_patch`)."""
    return Comparison().make_patch(old, new)
