"""Which appends must be on the disk before the run continues.

With `synchronous_commit` off, PostgreSQL acknowledges a commit before it is on the disk: a crash of the server loses
the newest commits, though never a commit without all later ones. Records that a run can compute again from those on the
disk may be sent this way: a decision, the commit of a step, a snapshot, an event. The writer keeps these lines until an
append has waited for the disk, and sends them again if they are lost. Records that cannot be computed again wait for
the disk: an outcome, a wait, an answer, an end, and the intent of an effect that must not happen twice.
"""

from ...file.record import Record
from ..sql.database import Line

_LOSABLE = frozenset((b"decide", b"commit", b"snapshot", b"event"))


def must_sync(line: Line) -> bool:
    """Return whether a record must be synced before the run continues."""
    if line.kind in _LOSABLE:
        return False
    return not (line.kind == b"intent" and Record.parse(line.raw).get("idempotent") is True)


def may_wait(line: Line) -> bool:
    """Return whether the run continues before the server has a record.

    It does after the commit of a step, which starts nothing, and is computed again if lost. The next append of the run
    comes before the next effect, and waits for both.
    """
    return line.kind == b"commit"
