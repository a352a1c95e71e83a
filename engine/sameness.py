"""Whether parts of a state are the same JSON as those of a document, step by step, looking only at what has changed."""

from collections.abc import Mapping
from itertools import compress, count
from operator import is_not, or_
from typing import Any

import orjson

from ..traces.compare import key_token
from .state import StateModel, dump


class Sameness:
    """Compares the states of a run with the documents of another, step by step.

    What was found to be the same is kept with the place where it stood; states share with the next one what did not
    change, and so do documents, so that it is not looked at again.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, Any]] = {}

    def same(self, node: Any, doc: Any, path: str) -> bool:
        """Whether the part of a state at `path` is the same JSON as that of a document, order of members included."""
        if not isinstance(doc, dict | list):
            return dump(node) == orjson.dumps(doc)
        known = self._known.get(path, (None, None))
        if known[0] is node and known[1] is doc:
            return True
        if isinstance(node, StateModel):
            found = isinstance(doc, dict) and self._same_members(node.__dict__, doc, path)
        elif isinstance(node, dict):
            found = isinstance(doc, dict) and self._same_members(node, doc, path)
        elif isinstance(node, list):
            found = isinstance(doc, list) and _same_items(node, doc, known)
        else:
            found = dump(node) == orjson.dumps(doc)
        if found:
            self._known[path] = node, doc
        return found

    def _same_members(self, node: Mapping[Any, Any], doc: Mapping[str, Any], path: str) -> bool:
        names = [key_token(key) for key in node]
        if names != [key_token(key) for key in doc]:
            return False
        members = zip(names, node.values(), doc.values(), strict=True)
        return all(self.same(value, other, f"{path}/{name}") for name, value, other in members)


def _same_items(items: list[Any], others: list[Any], known: tuple[Any, Any]) -> bool:
    """Whether two lists are the same JSON; where they hold what two that are the same held, that is taken as such."""
    if len(items) != len(others):
        return False
    before, after = known if known[0] is not None else ([], [])
    changed = map(or_, map(is_not, items, before), map(is_not, others, after))
    places = [*compress(count(), changed), *range(min(len(items), len(before)), len(items))]
    return dump([items[i] for i in places]) == orjson.dumps([others[i] for i in places])
