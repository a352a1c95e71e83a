"""A trace's states, for readers that walk from one to another."""

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..errors import PatchError, TraceCorruptError, TraceError
from ..file.lines import Lines
from ..file.record import Record
from ..file.safe_open import SMALL
from ..json_patch.share import patched, pointers

_KEPT = 64
_POINTERS = 50_000
"""How many pointers the cached documents may hold beyond what they share, even for a small trace: under a megabyte."""


class History:
    """The documents of a trace, numbered by the patches before them.

    Document 0 is the first state. The most recent documents are cached, so that a step forward or back costs one patch.
    Documents are shared with their neighbours and with the records: do not change them.
    """

    def __init__(self, lines: Lines, base: Callable[[], Any]) -> None:
        """Read `lines`; `base` returns the state of the run they start from."""
        self._lines = lines
        self._base = base
        self.commits = array("Q")
        """The index of the record of each commit."""
        self.patching = array("Q")
        """The indices of the records that may carry a patch."""
        self._snapshots = array("Q")
        self._latest: tuple[int, Record] | None = None
        self._kept: OrderedDict[int, Any] = OrderedDict()
        self._weights: dict[int, int] = {}
        self._weight = 0
        self._most = max(_POINTERS, min(len(lines.data), SMALL) // 4)
        for index, raw in enumerate(lines.raws()):
            if raw.startswith((b'{"kind":"commit",', b'{"kind":"end",', b'{"kind":"resume",')):
                self.patching.append(index)
                if raw.startswith(b'{"kind":"c'):
                    self.commits.append(index)
            elif raw.startswith(b'{"kind":"snapshot",'):
                self._snapshots.append(index)
        if self.commits and not self.commits[0]:
            raise TraceCorruptError("the trace does not begin with its header", 1, path=lines.path)
        last = lines.record(self.commits[-1]) if self.commits else None
        if last is not None and last.step + 1 != len(self.commits):
            reason = "the number of commits up to this one is wrong"
            raise TraceCorruptError(
                reason, last.seq + 1, path=lines.path, expected=last.step + 1, actual=len(self.commits)
            )

    def record(self, index: int) -> Record:
        """Return a record, and keep the last one parsed.

        A step and its document are often used together.
        """
        if self._latest is None or self._latest[0] != index:
            self._latest = index, self._lines.record(index)
        return self._latest[1]

    def before(self, step: int) -> Any:
        """Return the document before the commit of a step."""
        return self.at(bisect_left(self.patching, self.commits[step]))

    def after(self, step: int) -> Any:
        """Return the document after the commit of a step."""
        return self.at(bisect_left(self.patching, self.commits[step]) + 1)

    def latest(self) -> Any:
        """Return the document after all patches."""
        return self.at(len(self.patching))

    def at_line(self, index: int) -> Any:
        """Return the document after all records before record `index`."""
        return self.at(bisect_left(self.patching, index))

    def at(self, ordinal: int) -> Any:
        """Return the document after the first `ordinal` patches."""
        kept = self._kept
        if ordinal in kept:
            kept.move_to_end(ordinal)
            return kept[ordinal]
        start = max((known for known in kept if known < ordinal), default=-1)
        limit = self.patching[ordinal] if ordinal < len(self.patching) else len(self._lines)
        place = bisect_left(self._snapshots, limit) - 1
        near = bisect_left(self.patching, self._snapshots[place]) if place >= 0 else -1
        if max(start, near) < 0:
            raise TraceError("the trace has no state: the run ended before init_state returned one")
        if near > start:
            snapshot = self._lines.record(self._snapshots[place])
            doc, start = snapshot["state"] if "state" in snapshot else self._base(), near
        else:
            doc = kept[start]
        for number in range(start, ordinal):
            index, copies = self.patching[number], list[Any]()
            try:
                doc = patched(doc, self.record(index).get("patch") or (), copies)
            except PatchError as error:
                raise TraceCorruptError(
                    f"the patch does not fit the state: {error}", index + 1, path=self._lines.path
                ) from None
            self._keep(number + 1, doc, sum(map(pointers, copies)))
        if ordinal not in kept:
            self._keep(ordinal, doc, 0)
        return doc

    def _keep(self, ordinal: int, doc: Any, weight: int) -> None:
        """Cache a document; drop old ones beyond the limits, but keep two."""
        kept = self._kept
        kept[ordinal] = doc
        kept.move_to_end(ordinal)
        self._weight += weight - self._weights.get(ordinal, 0)
        self._weights[ordinal] = weight
        while len(kept) > _KEPT or (self._weight > self._most and len(kept) > 2):
            self._weight -= self._weights.pop(kept.popitem(last=False)[0])
