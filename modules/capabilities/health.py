"""What became of each part of a capability.

It is there, there with something to know, or left out with a reason.
"""

import logging
from dataclasses import asdict, dataclass
from typing import Any, Literal

log = logging.getLogger("refold")

Status = Literal["ok", "error", "degraded"]
"""There ("ok"), not there ("error"), or "degraded".

A degraded part is there in part, or not in the way that the manifest asks for."""


@dataclass(frozen=True)
class ComponentHealth:
    """One part of a capability.

    Attributes:
        kind: the manifest's key for it, such as `tools`.
        name: its name, or the file it was looked for in, relative to the capability.
        status: whether it is there.
        error: what went wrong, with the class of the exception if there was one.
        detail: what else there is to know.
    """

    kind: str
    name: str
    status: Status
    error: str | None = None
    detail: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


class Health:
    """Collects what became of the parts of one capability.

    It tells the log of whatever is not as it should be.
    """

    def __init__(self, capability: str) -> None:
        self.entries: list[ComponentHealth] = []
        self._capability = capability

    def ok(self, kind: str, name: str, detail: str | None = None) -> None:
        """Note that a part is there."""
        self.entries.append(ComponentHealth(kind, name, "ok", detail=detail))

    def left_out(self, kind: str, name: str, why: str | BaseException) -> None:
        """Note that a part is not there, and tell the log."""
        self._tell(ComponentHealth(kind, name, "error", told(why)), "is left out")

    def degraded(self, kind: str, name: str, why: str, detail: str | None = None) -> None:
        """Note that a part is there in part, and tell the log."""
        self._tell(ComponentHealth(kind, name, "degraded", why, detail), "is not whole")

    def _tell(self, entry: ComponentHealth, what: str) -> None:
        self.entries.append(entry)
        log.warning("capability %r: %s %s %s: %s", self._capability, entry.kind, entry.name, what, entry.error)


def told(why: str | BaseException) -> str:
    """Return an error in words, with its class."""
    return why if isinstance(why, str) else f"{type(why).__name__}: {why}"
