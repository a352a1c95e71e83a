"""What happened in a run: its records and everything read from them.

`Trace` is the face for reading. The rooms: `file` holds a trace as bytes, `json_patch` makes and applies patches,
`states` folds patches into states, and `analysis` answers questions about one trace or many. Nothing here imports user
code: a trace is data, and can be read where the module that wrote it is not installed.
"""

from .analysis.blame import Blame
from .analysis.differences import ABSENT, Difference
from .analysis.family import family
from .analysis.family_tree import Family, Kin, KinBranch, KinCandidate
from .analysis.listing import TraceSummary, list_traces, summarize
from .analysis.locate import branches_folder
from .analysis.run_diff import PhaseDiff, TraceDiff
from .file.blob import blob_reference, is_blob
from .file.follow import Follower
from .file.record import FORMAT, Record
from .file.repair import Repair, repair
from .file.store import SUFFIX
from .file.writer import Durability, TraceWriter
from .json_patch.apply import apply_patch, copy_json, escape, join_pointer, same_json, split_pointer
from .json_patch.share import Change, changes_of, patched
from .replay import Replay, replay
from .step import Effect, Step
from .trace import Trace

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
    "PhaseDiff",
    "Record",
    "Repair",
    "Replay",
    "Step",
    "Trace",
    "TraceDiff",
    "TraceSummary",
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
