"""Any document of a trace, cheap for whoever walks along: neighbours share what did not change."""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .errors import PatchError, TraceCorruptError, TraceError
from .lines import Lines
from .share import patched

_KEPT = 64


class History:
    """The documents between the patches of a trace, numbered by how many patches lead to them.

    The last few that were asked for are kept, so that steps forwards and backwards cost one patch each. What it gives
    is shared, with its neighbours and with the records: look at it, don't change it.
    """

    def __init__(self, lines: Lines, base: Callable[[], Any]) -> None:
        """Make the documents of these lines; `base` gives the state of another run where they begin with one."""
        self._lines = lines
        self._base = base
        self.commits: list[int] = []
        """The index of each commit's record."""
        self.patching: list[int] = []
        """The indices of the records that may carry a patch."""
        self._snapshots: list[int] = []
        self._kept: OrderedDict[int, Any] = OrderedDict()
        data, offsets = lines.data, lines.offsets
        for index in range(len(lines)):
            at = offsets[index]
            if data.startswith((b'{"kind":"commit",', b'{"kind":"end",', b'{"kind":"resume",'), at):
                self.patching.append(index)
                if data.startswith(b'{"kind":"c', at):
                    self.commits.append(index)
            elif data.startswith(b'{"kind":"snapshot",', at):
                self._snapshots.append(index)

    def before(self, step: int) -> Any:
        """Give the document that the commit of a step was applied to."""
        return self.at(bisect_left(self.patching, self.commits[step]))

    def after(self, step: int) -> Any:
        """Give the document that the commit of a step led to."""
        return self.at(bisect_left(self.patching, self.commits[step]) + 1)

    def at_line(self, index: int) -> Any:
        """Give the document that all records before this one lead to."""
        return self.at(bisect_left(self.patching, index))

    def at(self, ordinal: int) -> Any:
        """Give the document after the first `ordinal` patches."""
        kept = self._kept
        if ordinal in kept:
            kept.move_to_end(ordinal)
            return kept[ordinal]
        start = max((known for known in kept if known < ordinal), default=-1)
        limit = self.patching[ordinal] if ordinal < len(self.patching) else len(self._lines)
        place = bisect_left(self._snapshots, limit) - 1
        near = bisect_left(self.patching, self._snapshots[place]) if place >= 0 else -1
        if max(start, near) < 0:
            raise TraceError("the trace has no state: the run ended before init_state gave one")
        if near > start:
            snapshot = self._lines.record(self._snapshots[place])
            doc, start = snapshot["state"] if "state" in snapshot else self._base(), near
        else:
            doc = kept[start]
        for number in range(start, ordinal):
            index = self.patching[number]
            try:
                doc = patched(doc, self._lines.record(index).get("patch") or ())
            except PatchError as error:
                raise TraceCorruptError(
                    f"the patch does not fit the state: {error}", index + 1, path=self._lines.path
                ) from None
            self._keep(number + 1, doc)
        self._keep(ordinal, doc)
        return doc

    def _keep(self, ordinal: int, doc: Any) -> None:
        self._kept[ordinal] = doc
        self._kept.move_to_end(ordinal)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
