"""Two runs side by side, aligned by step; a fork and its source by the source's steps.

Steps whose records are equal, but for numbers, times and keys, are equal. The others are compared phase by phase, up to
a limit; beyond it a step counts as different if its records are.
"""

import re
import time
from collections.abc import Iterator
from typing import Any

from ...traces.analysis.differences import ABSENT, Difference, Twins
from ...traces.analysis.run_diff import StepPhases, end_of, header_differences
from ...traces.index.folder import Folder
from ...traces.index.indexed import IndexedTrace
from ...traces.index.step_facts import RARE, brief, clipped
from ...traces.json_patch.apply import copy_json
from .changes import change_tree
from .nodes import Json, Nodes
from .problems import wrong
from .runs import families_of

_LISTED = 1_000
_COLUMNS = 4_000
_SECONDS = 2.0
"""How long steps are compared phase by phase before a step with other records just counts as different."""
_CHUNK = 1 << 22
_NOISE: tuple[tuple[re.Pattern[bytes], bytes], ...] = (
    (re.compile(rb'\n\{"kind":"(?:snapshot|event|resume|end|header)"[^\n]*'), b""),
    (re.compile(rb'\n\{"kind":"([a-z]+)","seq":\d+,"step":\d+,"at":[^,\n]+'), rb"\n\1"),
    (re.compile(rb',"hash":"[0-9a-f]{32}"\}\n'), b"\n"),
    (re.compile(rb',"seconds":[-+.0-9eE]+(,"usage":\{[^{}\n]*\})?\n'), rb"\1\n"),
    (re.compile(rb',"key":"[^"\\\n]*"(?:,"parent":\d+)?(,"idempotent":(?:true|false))?\n'), rb"\1\n"),
    (re.compile(rb'\noutcome,"intent":\d+'), b"\noutcome"),
    (re.compile(rb'(,"observation":\{"results":\[)[0-9,]*(\]\})(?:,"usage":\{[^{}\n]*\})?\n'), rb"\1\2\n"),
)
"""What differs from run to run in records that say the same, in the order in which it is taken out of whole lines. All
of it is at the beginning or the end of a line, where text that a user wrote cannot be mistaken for it."""


def compare(folder: Folder, a: str, b: str, n: int, k: int | None = None) -> Json:
    """Return the comparison of two runs; `k` is the aligned step, a number of `a`, to look at instead of the first."""
    if not 1 <= n <= _COLUMNS:
        raise wrong(f"n is 1 to {_COLUMNS}, not {n}")
    left, right = folder.open(a), folder.open(b)
    families = families_of(folder)
    with left.lock, right.lock:
        return _Comparing(left, right).answer(families.run_row(a), families.run_row(b), n, k)


class _Comparing:
    """One comparison."""

    def __init__(self, left: IndexedTrace, right: IndexedTrace) -> None:
        self.left, self.right = left, right
        self.kin, self.shift, self.source = _kin(left, right)
        self.counts = _steps(left), _steps(right)
        self.low = min(0, self.shift)
        self.high = max(self.counts[0], self.counts[1] + self.shift)

    def answer(self, a: Json, b: Json, n: int, k: int | None) -> Json:
        """Return the whole answer."""
        differing, first = self._differing()
        first = first or self._elsewhere()
        here = first if k is None else self._at(k)
        steps = max(0, self.high - self.low)
        columns = min(n, steps)
        marks = [" "] * columns
        both = range(max(0, self.shift), min(self.counts[0], self.counts[1] + self.shift))
        for k in both if columns else ():
            marks[(k - self.low) * columns // steps] = "="
        for k in differing if columns else ():
            marks[(k - self.low) * columns // steps] = "x"
        return {
            "a": a,
            "b": b,
            "kin": self.kin,
            "shift": self.shift,
            "only_a": self.counts[0] - len(both),
            "only_b": self.counts[1] - len(both),
            "columns": {
                "a": self._columns(self.left, 0, columns),
                "b": self._columns(self.right, self.shift, columns),
                "differ": "".join(marks),
            },
            "edited": self._edited(),
            "first": first,
            "here": here,
            "differing": differing[:_LISTED],
            "differing_total": len(differing),
            "states": self._states(here),
        }

    def _differing(self) -> tuple[list[int], Json | None]:
        """Return the aligned steps that differ, and the first difference."""
        start = max(0, self.shift)
        stop = min(self.counts[0], self.counts[1] + self.shift)
        _, _, twins = header_differences(self.left, self.right)
        phases = StepPhases(twins, parted=self.kin == "fork", shift=self.shift)
        found: list[int] = []
        first: Json | None = None
        until = time.monotonic() + _SECONDS
        if self.kin != "fork" and start < stop and (first := self._init(twins)) is not None:
            phases.parted = True
        pairs = zip(
            _plain_steps(self.left, start, stop, self.shift != 0),
            _plain_steps(self.right, start - self.shift, stop, self.shift != 0),
            strict=False,
        )
        for k, (mine, theirs) in enumerate(pairs, start):
            if k >= stop:
                break
            if mine == theirs:
                continue
            if first is None or time.monotonic() < until:
                difference = self._of_step(k, phases)
                if difference is None:
                    continue
                first = first or difference
            found.append(k)
        return found, first

    def _init(self, twins: Twins) -> Json | None:
        """Return the difference of the two first states."""
        old, new = self.left.document(0)[0], self.right.document(0)[0]
        found = next(StepPhases(twins).differences(old, new, "/state"), None)
        return None if found is None else self._told(0, 0, "init", found)

    def _of_step(self, k: int, phases: StepPhases) -> Json | None:
        a, b = self.left.step(k), self.right.step(k - self.shift)
        first: Json | None = None
        for phase, found in phases.of(a, b):
            if found and first is None:
                first = self._told(k, k - self.shift, phase, found[0])
        return first

    def _at(self, k: int) -> Json | None:
        """Return the first difference in an aligned step; None if there is none, or if only one run has the step."""
        if not max(0, self.shift) <= k < min(self.counts[0], self.counts[1] + self.shift):
            return None
        _, _, twins = header_differences(self.left, self.right)
        return self._of_step(k, StepPhases(twins, parted=True, shift=self.shift))

    def _elsewhere(self) -> Json | None:
        """Return the first difference of runs whose common steps are equal: more steps, the end, or the header."""
        na, nb = self.counts[0], self.counts[1] + self.shift
        if na != nb and max(na, nb) > max(0, self.shift):
            k = min(na, nb)
            has_a, has_b = k < na, k < nb
            label = (self.left if has_a else self.right).one(k if has_a else k - self.shift).label
            return {
                "ka": k if has_a else None,
                "kb": k - self.shift if has_b else None,
                "phase": "decide",
                "path": None,
                "a": None,
                "b": None,
                "says": f"only {'A' if has_a else 'B'} has this step: {label}",
            }
        ends = next(StepPhases().differences(end_of(self.left), end_of(self.right), ""), None)
        if ends is not None:
            return self._told(None, None, "end", ends)
        headers, _, _ = header_differences(self.left, self.right)
        return self._told(None, None, "header", headers[0]) if headers and self.kin != "fork" else None

    def _told(self, ka: int | None, kb: int | None, phase: str, found: Difference) -> Json:
        sides = [
            None if value is ABSENT else Nodes(trace.value).node(value)
            for value, trace in ((found.left, self.left), (found.right, self.right))
        ]
        words = ["nothing" if value is ABSENT else brief(value) for value in (found.left, found.right)]
        says = f"{phase} {found.path or '/'}: {clipped(words[0])} | {clipped(words[1])}"
        return {"ka": ka, "kb": kb, "phase": phase, "path": found.path, "a": sides[0], "b": sides[1], "says": says}

    def _edited(self) -> Json | None:
        if self.kin != "fork" or self.source is None:
            return None
        source, k, fork = self.source
        if not 0 <= k <= source.count:
            return None
        old, new = copy_json(source.document(k)[0]), fork.document(0)[0]
        return {"k": k, **change_tree(old, new, f"s:{k}:", "s:0:")}

    def _states(self, first: Json | None) -> Json | None:
        if first is None or first["phase"] == "header":
            return None
        ka, kb = first["ka"], first["kb"]
        init = first["phase"] == "init"
        a = min(self.left.count, ka if init or ka is None else ka + 1) if ka is not None else self.left.count
        b = min(self.right.count, kb if init or kb is None else kb + 1) if kb is not None else self.right.count
        end = first["phase"] == "end"
        old = copy_json(self.left.document(a, end=end)[0])
        return {"k": a, **change_tree(old, self.right.document(b, end=end)[0], f"s:{a}:", f"s:{b}:")}

    def _columns(self, trace: IndexedTrace, shift: int, n: int) -> Json:
        """Return the columns of one side; a column in which it has no step is blank."""
        names = ("first", "seconds", "tokens", "cost", "sum_seconds", "sum_tokens", "sum_cost")
        found: Json = {"from": self.low - shift, "to": self.high - shift, "n": n, "mode": ""} | {
            name: [] for name in names
        }
        steps = self.high - self.low
        rows: dict[int, tuple[Any, ...]] = {}
        for facts in trace.facts(0, trace.count + 1) if n and steps <= 2 * n else ():
            tokens, sums = facts.tokens_in + facts.tokens_out, facts.sum_tokens_in + facts.sum_tokens_out
            column = (facts.k + shift - self.low) * n // steps
            mine = (facts.k, facts.seconds or 0.0, tokens, facts.cost or 0.0, facts.sum_seconds, sums, facts.sum_cost)
            rows[column] = _merged(rows.get(column), (*mine, RARE.index(facts.mode)))
        if n and not rows:
            for column, *row in trace.query(
                "SELECT (k + ?2) * ?3 / ?4 AS c, min(k), max(coalesce(seconds, 0)), max(tokens_in + tokens_out), "
                "max(coalesce(cost, 0)), max(sum_seconds), max(sum_tokens_in + sum_tokens_out), max(sum_cost), "
                "min(CASE mode WHEN 'E' THEN 0 WHEN 'W' THEN 1 WHEN 'B' THEN 2 WHEN 'F' THEN 3 ELSE 4 END) "
                "FROM steps WHERE trace = ?1 GROUP BY c ORDER BY c",
                (shift - self.low, n, steps),
            ):
                rows[column] = tuple(row)
        modes = []
        blank: tuple[Any, ...] = (-1, 0.0, 0, 0.0, 0.0, 0, 0.0)
        for column in range(n):
            row_ = rows.get(column)
            if row_ is None:
                modes.append(" ")
                row_ = (*blank[:4], *(found[name][-1] if column else 0 for name in names[4:]))
            else:
                modes.append(RARE[row_[7]])
            for name, value in zip(names, row_, strict=False):
                found[name].append(value)
        found["mode"] = "".join(modes)
        return found


def _merged(old: tuple[Any, ...] | None, new: tuple[Any, ...]) -> tuple[Any, ...]:
    if old is None:
        return new
    return (old[0], *(max(a, b) for a, b in zip(old[1:7], new[1:7], strict=True)), min(old[7], new[7]))


def _steps(trace: IndexedTrace) -> int:
    return trace.count + (trace.open_facts() is not None)


def _kin(left: IndexedTrace, right: IndexedTrace) -> tuple[str, int, tuple[IndexedTrace, int, IndexedTrace] | None]:
    """Return how two runs are related, the shift between their steps, and (source, step, fork)."""
    mine, theirs = _fork_of(left), _fork_of(right)
    if theirs is not None and theirs[0] == left.run_id:
        return "fork", theirs[1], (left, theirs[1], right)
    if mine is not None and mine[0] == right.run_id:
        return "fork", -mine[1], (right, mine[1], left)
    if mine is not None and theirs is not None and mine[0] == theirs[0]:
        shift = theirs[1] - mine[1]
        return "fork", shift, (left, shift, right) if shift >= 0 else (right, -shift, left)
    if left.header.get("parent") == right.header.get("parent") is not None:
        return "same", 0, None
    same = all(left.header.get(name) == right.header.get(name) for name in ("module", "state"))
    tasks = [(trace.header.get("task") or {}).get("objective") for trace in (left, right)]
    return ("same" if same and tasks[0] == tasks[1] else "other"), 0, None


def _fork_of(trace: IndexedTrace) -> tuple[str, int] | None:
    link = trace.header.get("parent")
    return (link["run"], link["step"]) if link and link["kind"] == "fork" else None


def _plain_steps(trace: IndexedTrace, first: int, stop: int, shifted: bool) -> Iterator[bytes]:
    """Yield the records of each step without what differs from run to run; of shifted ones without step numbers."""
    k = max(0, first)
    last = min(stop + abs(first), trace.count)
    while k < last:
        several = trace.facts(k, min(k + 2_000, last))
        several = [each for each in several if each.stop - several[0].start <= _CHUNK] or several[:1]
        data = b"\n" + trace.file.read(several[0].start, several[-1].stop)
        for noise, plain in _NOISE:
            data = noise.sub(plain, data)
        begin = 0
        for facts in several:
            end = data.find(b"\n", data.find(b"\ncommit", begin) + 1)
            step = data[begin:end]
            yield re.sub(rb'"s%da(\d+)"' % facts.k, rb'"s#a\1"', step) if shifted else step
            begin = end
        k += len(several)
    if trace.open_facts() is not None:
        yield str(trace.path).encode()  # no other step equals the one under way: it is compared as it is
