"""The trace of a run, and all code that reads traces.

`Trace` is the class for reading. The rooms: `file` holds a trace as bytes, `json_patch` makes and applies patches,
`states` folds patches into states, `analysis` answers questions about one trace or many, `index` makes these answers
fast, `stores` keeps traces in databases, and `export` writes other formats. Nothing here imports user code, so a trace
can be read where its module is not installed.
"""

from .analysis.blame import Blame
from .analysis.differences import ABSENT, Difference
from .analysis.family import family
from .analysis.family_tree import FamilyTree
from .analysis.run_diff import PhaseDiff, TraceDiff
from .analysis.trace_list import TraceSummary, list_traces, summarize
from .file.follow import Follower
from .file.record import Record
from .file.repair import Repair, repair
from .file.writer import Durability
from .json_patch.apply import apply_patch
from .json_patch.changed import changed_between
from .json_patch.share import Change, changes_of
from .replay_cursor import Replay, replay
from .step import Effect, Step
from .trace import Trace

__all__ = [
    "ABSENT",
    "Blame",
    "Change",
    "Difference",
    "Durability",
    "Effect",
    "FamilyTree",
    "Follower",
    "PhaseDiff",
    "Record",
    "Repair",
    "Replay",
    "Step",
    "Trace",
    "TraceDiff",
    "TraceSummary",
    "apply_patch",
    "changed_between",
    "changes_of",
    "family",
    "list_traces",
    "repair",
    "replay",
    "summarize",
]
