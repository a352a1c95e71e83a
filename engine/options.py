"""The options of an Engine, for code that passes them on."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from .effects.budget import RuntimeBudget
from .effects.redaction import Redactor
from .loop.stop_criteria import StopCriteria
from .run.clock import Clock
from .run.plan import Observer
from .run.waits import OnWait
from .strategies.protocol import BranchStrategy


class CommonOptions(TypedDict, total=False):
    """The options that an Engine and an Agent take in the same form."""

    stop: Sequence[StopCriteria]
    branch: BranchStrategy | None
    on_wait: OnWait | None
    traces: Path | str | None
    observers: Sequence[Observer]
    durability: Literal["process", "power", "none"]
    redact: bool | Redactor | Iterable[str] | Mapping[str, str]
    clock: Clock | None
    seed: int | None
    workspace: Path | str | None
    max_children: int
    shared_env: bool


class EngineOptions(CommonOptions, total=False):
    """The keyword arguments of `Engine`, which explains each.

    A test compares the two.
    """

    budget: RuntimeBudget | None
