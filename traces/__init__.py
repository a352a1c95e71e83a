"""What happened: records, the file they are in, and everything that can be read out of it. Pure data, no user code."""

from .blob import blob_reference, is_blob
from .diff import PhaseDiff, TraceDiff
from .differences import ABSENT, Difference
from .errors import (
    NotATraceError,
    PatchError,
    RecordError,
    TraceCorruptError,
    TraceError,
    TraceExistsError,
    TraceLockedError,
    TraceNotFoundError,
    TraceWriteError,
)
from .family import family
from .find import Blame
from .follow import Follower
from .kin import Family, Kin, KinBranch, KinCandidate
from .listing import TraceSummary, list_traces, summarize
from .patch import apply_patch, copy_json, escape, join_pointer, same_json, split_pointer
from .record import FORMAT, Record
from .relatives import branches_folder
from .repair import Repair, repair
from .replay import Replay, replay
from .share import Change, changes_of, patched
from .step import Effect, Step
from .store import SUFFIX
from .trace import Trace
from .writer import Durability, TraceWriter

__all__ = [
    "ABSENT",
    "FORMAT",
    "SUFFIX",
    "Blame",
    "Change",
    "Difference",
    "Durability",
    "Effect",
    "Family",
    "Follower",
    "Kin",
    "KinBranch",
    "KinCandidate",
    "NotATraceError",
    "PatchError",
    "PhaseDiff",
    "Record",
    "RecordError",
    "Repair",
    "Replay",
    "Step",
    "Trace",
    "TraceCorruptError",
    "TraceDiff",
    "TraceError",
    "TraceExistsError",
    "TraceLockedError",
    "TraceNotFoundError",
    "TraceSummary",
    "TraceWriteError",
    "TraceWriter",
    "apply_patch",
    "blob_reference",
    "branches_folder",
    "changes_of",
    "copy_json",
    "escape",
    "family",
    "is_blob",
    "join_pointer",
    "list_traces",
    "patched",
    "repair",
    "replay",
    "same_json",
    "split_pointer",
    "summarize",
]
