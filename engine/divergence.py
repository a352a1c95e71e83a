"""A place where the code no longer does what its trace recorded."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Divergence:
    """`expected` is what the trace has, `actual` what the code did now; `patch` leads from the one to the other.

    `phase` is "init", "decide" or "reduce".
    """

    step: int
    phase: str
    expected: Any
    actual: Any
    patch: list[dict[str, Any]] = field(default_factory=list)

    def __str__(self) -> str:
        places = ", ".join(op["path"] or "/" for op in self.patch[:3])
        more = f" and {len(self.patch) - 3} more" if len(self.patch) > 3 else ""
        where = f" at {places}{more}" if self.patch else ""
        return f"step {self.step}, {self.phase}{where}: recorded {_short(self.expected)}, now {_short(self.actual)}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."
