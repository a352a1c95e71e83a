"""Refuses to continue a run without the files that it had."""

from ....tasks.errors import FilesLostError
from ....traces import Trace

SHOWN_FILES = 20
"""How many names the event has; `count` is the number of all files."""


def refuse_lost_files(trace: Trace, *, since_resume: bool) -> None:
    """Raise FilesLostError if the trace tells of lost files.

    With `since_resume`, what earlier attempts lost does not count: somebody has resumed the run without it.
    """
    for record in reversed(trace.records):
        if since_resume and record.kind == "resume":
            return
        if record.kind == "event" and record["name"] == "environment_files_lost":
            data = record["data"]
            raise FilesLostError(trace.run_id, data["environment"], data["files"], data["count"])
