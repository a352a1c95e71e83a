"""What happened: records, the file they are in, and everything that can be read out of it. Pure data, no user code."""

from .errors import (
    PatchError,
    RecordError,
    TraceCorruptError,
    TraceError,
    TraceExistsError,
    TraceLockedError,
    TraceNotFoundError,
    TraceWriteError,
)
from .patch import apply_patch, escape, join_pointer, same_json, split_pointer
from .record import FORMAT, Record
from .trace import Trace
from .writer import Durability, TraceWriter

__all__ = [
    "FORMAT",
    "Durability",
    "PatchError",
    "Record",
    "RecordError",
    "Trace",
    "TraceCorruptError",
    "TraceError",
    "TraceExistsError",
    "TraceLockedError",
    "TraceNotFoundError",
    "TraceWriteError",
    "TraceWriter",
    "apply_patch",
    "escape",
    "join_pointer",
    "same_json",
    "split_pointer",
]
