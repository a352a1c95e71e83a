"""The starts and ends of candidates' runs: the data that an exploration and its children exchange."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from ...tasks import Environment
from ...traces import Trace
from ..effects.redaction import Redactor
from ..endings import RunStatus, StopReason
from ..loop.decision import Decision
from ..replay.reuse import Reuse
from ..result import WaitRequest
from ..run.runner import Limit
from ..state.model import StateSchema, dump

_LONGEST_ID = 160
"""The longest id of a child run, in characters.

A root's id has at most 115: a task's id (100), a hyphen and a suffix of 14. It fits together with the digest of a long
id (25), and leaves room for some levels of places before a digest is needed. With the endings of its files, such as
`.trace.jsonl`, an id stays below the 240 characters that a trace may name and the 255 bytes of most file systems.
"""


@dataclass(frozen=True, slots=True)
class Stand:
    """A state that a run has reached, from which child runs can start."""

    run_id: str
    step: int
    """How many steps of the run led to the state."""
    state: StateSchema
    hash: str | None
    """The hash of the record that determines the state."""
    path: str
    """The run's fork path, on which randomness depends."""
    weight: int
    """How many bytes of traces a reader of the state has to read."""
    redactor: Redactor | None
    reuse: Reuse | None
    """The outcomes that the run reuses from another run."""


@dataclass(frozen=True, slots=True)
class Birth:
    """The description of a child run before it starts: its first state, candidate and limit."""

    run_id: str
    stand: Stand
    candidate: Decision
    number: int
    path: str
    limit: Limit
    environment: Environment | None
    model: str | None
    """The id of the child, in a fork's source, whose outcomes this child reuses."""

    @property
    def link(self) -> dict[str, Any]:
        """The link to the parent, for the child's header."""
        stand = self.stand
        link = {"run": stand.run_id, "step": stand.step, "candidate": self.number, "hash": stand.hash}
        return {**link, "path": self.path}

    def is_of(self, trace: Trace, origin: Trace) -> bool:
        """Return whether `trace` belongs to this child: same candidate, and it starts from a record of `origin`."""
        link = trace.header.get("parent") or {}
        first = next((record["decision"] for record in trace.records if record.kind == "decide"), None)
        wanted = orjson.loads(dump(self.candidate.with_ids(0).to_dict()))
        same = all(link.get(name) == value for name, value in self.link.items() if name != "hash")
        return same and first in (None, wanted) and any(record.hash == link.get("hash") for record in origin.records)


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """The end of a child run."""

    stand: Stand
    candidates: tuple[Decision, ...]
    """The candidates of the branch decision at which the child stopped."""
    reason: StopReason
    error: str | None = None
    cut: StopReason | None = None
    """The budget, shared with the parent, that ended the child, if one did."""
    waiting: tuple[WaitRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class Earlier:
    """Facts about earlier attempts at a step: the children they started, and whether the run had failed."""

    opened: frozenset[str] = frozenset()
    failed: bool = False

    @classmethod
    def of(cls, trace: Trace) -> "Earlier":
        """Read the unfinished step of a trace."""
        step = trace.unfinished
        records = step.records if step is not None else ()
        opened = [r["opened"]["children"] for r in records if r.kind == "branch" and "opened" in r]
        failed = any(r.kind == "end" and r["status"] == RunStatus.failed for r in records)
        return cls(frozenset(name for names in opened for name in names), failed)


def child_id(parent: str, place: str) -> str:
    """Return the id of a run's child at a place, such as `run~3.0`; a digest replaces the end of a long id.

    An id names the trace's file, and most file systems allow names of at most 255 bytes.
    """
    name = f"{parent}~{place}"
    if len(name) <= _LONGEST_ID:
        return name
    root = parent.partition("~")[0][: _LONGEST_ID - 25]
    return f"{root}~{blake2b(name.encode(), digest_size=12).hexdigest()}"
