"""A divergence of the code from its trace."""

from dataclasses import dataclass, field
from typing import Any

from ...traces.errors import DivergenceError

OTHER_VERSION = "schema_version"
"""The phase of a divergence between versions of the state class."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """One difference between a trace and the present code.

    `expected` is the recorded value, `actual` the present value. `patch` (JSON Patch) leads from `expected` to `actual`
    if both are objects; for "reduce", where both are patches, it leads from the recorded state to the present state.
    `phase` is "init", "decide" or "reduce"; when a run is resumed, also "act" or "branch". It is "schema_version" if
    the states from this step on have another version than the module's, so that no hook can run again. `run` is the id
    of the child run with the divergence, or None for the run itself.
    """

    step: int
    phase: str
    expected: Any
    actual: Any
    patch: list[dict[str, Any]] = field(default_factory=list)
    run: str | None = None

    def __str__(self) -> str:
        places = ", ".join(op["path"] or "/" for op in self.patch[:3])
        more = f" and {len(self.patch) - 3} more" if len(self.patch) > 3 else ""
        where = f" at {places}{more}" if self.patch else ""
        place = f"step {self.step}, {self.phase}{where}" + (f" of child run {self.run}" if self.run else "")
        return f"{place}: recorded {_short(self.expected)}, now {_short(self.actual)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


def pinned_elsewhere(run_id: str, step: int, phase: str, name: str, earlier: str, value: str) -> DivergenceError:
    """Return the error for a pinned fact that differs on resume."""
    return DivergenceError(
        [Divergence(step, phase, {name: earlier}, {name: value})],
        f"Run {run_id} worked in the {name} {earlier}, and this process has {value}. Resume the run there, or continue "
        "here with on_divergence='ignore' (--on-divergence ignore).",
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."
