"""Where child runs begin and where they have come to: the facts that pass between an exploration and its children."""

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


@dataclass(frozen=True, slots=True)
class Stand:
    """A state that a run has come to, as child runs begin with it."""

    run_id: str
    step: int
    """How many steps of that run led to it."""
    state: StateSchema
    hash: str | None
    """The hash of the record that it came with."""
    path: str
    """The run's fork path, which randomness depends on."""
    weight: int
    """How many bytes of traces lead to it."""
    redactor: Redactor | None
    reuse: Reuse | None
    """What the run took from another on its way there."""


@dataclass(frozen=True, slots=True)
class Birth:
    """A child run that is to be: what it begins with, the candidate it carries out, and how far it goes."""

    run_id: str
    stand: Stand
    candidate: Decision
    number: int
    path: str
    limit: Limit
    environment: Environment | None
    model: str | None
    """The child of another run whose outcomes it takes while it asks for the same."""

    @property
    def link(self) -> dict[str, Any]:
        """Where it comes from, as its header says it."""
        stand = self.stand
        link = {"run": stand.run_id, "step": stand.step, "candidate": self.number, "hash": stand.hash}
        return {**link, "path": self.path}

    def is_of(self, trace: Trace, origin: Trace) -> bool:
        """Whether a trace is of this child: it has this candidate, and begins with what `origin`, that run, has."""
        link = trace.header.get("parent") or {}
        first = next((record["decision"] for record in trace.records if record.kind == "decide"), None)
        wanted = orjson.loads(dump(self.candidate.with_ids(0).to_dict()))
        same = all(link.get(name) == value for name, value in self.link.items() if name != "hash")
        return same and first in (None, wanted) and any(record.hash == link.get("hash") for record in origin.records)


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """Where a child run has come to."""

    stand: Stand
    candidates: tuple[Decision, ...]
    """What the branch offers that it stopped at."""
    reason: StopReason
    error: str | None = None
    cut: StopReason | None = None
    """Why the family's budget ended it, if it did."""
    waiting: tuple[WaitRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier attempts at a step have left: the children they opened, and whether the run had failed."""

    opened: frozenset[str] = frozenset()
    failed: bool = False

    @classmethod
    def of(cls, trace: Trace) -> "Earlier":
        """What a trace has of the step under way."""
        step = trace.unfinished
        records = step.records if step is not None else ()
        opened = [r["opened"]["children"] for r in records if r.kind == "branch" and "opened" in r]
        failed = any(r.kind == "end" and r["status"] == RunStatus.failed for r in records)
        return cls(frozenset(name for names in opened for name in names), failed)


def child_id(parent: str, place: str) -> str:
    """The id of the child of a run at a place, such as `run~3.0`; one that grows too long is cut to a digest."""
    name = f"{parent}~{place}"
    if len(name) <= _LONGEST_ID:
        return name
    root = parent.partition("~")[0][: _LONGEST_ID - 25]
    return f"{root}~{blake2b(name.encode(), digest_size=12).hexdigest()}"
