"""Folds a trace with a JSON Patch library that is not ours, as a reader in any other language would."""

from typing import Any, NamedTuple

import orjson

try:
    import jsonpatch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'folding with jsonpatch needs that package; install it with: pip install "refold[testing]"', name=error.name
    ) from error

from ..traces import Trace

Document = dict[str, Any]


class Folded(NamedTuple):
    """What the patches lead to: `states` as `trace.state(k)` gives them, k = 0 … n, and the `final` one."""

    states: list[Document]
    final: Document | None


def fold_with_jsonpatch(trace: Trace) -> Folded:
    """Folds the trace's patches from its first snapshot on with `jsonpatch`; later snapshots are not looked at.

    A trace whose `init_state` gave no state has no states. Raises jsonpatch's own errors where a patch does not apply.
    """
    states: list[Document] = []
    doc: Document | None = None
    last: Document | None = None
    for record in trace.records:
        if record.kind == "snapshot" and doc is None:
            doc = last = orjson.loads(record.raw)["state"]
        if record.kind == "commit" and doc is not None:
            states.append(doc)
        if record.get("patch"):
            doc = jsonpatch.apply_patch(doc, record["patch"])
        if record.kind in ("commit", "resume"):
            last = doc
    return Folded(states if last is None else [*states, last], doc)
