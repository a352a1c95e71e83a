"""What an agent has done, read from its traces: events in a row, conversations, and the formats of others.

`projector` makes events of records, `trajectory` holds them, `converters`, `datasets` and `tables` write them down.
"""

from .converters import (
    load_trajectory_jsonl,
    trajectory_from_openai_format,
    trajectory_to_jsonl_record,
    trajectory_to_openai_format,
    trajectory_to_rows,
    trajectory_to_turns,
)
from .datasets import trajectories_to_hf_dataset
from .trajectory import Trajectory

__all__ = [
    "Trajectory",
    "load_trajectory_jsonl",
    "trajectories_to_hf_dataset",
    "trajectory_from_openai_format",
    "trajectory_to_jsonl_record",
    "trajectory_to_openai_format",
    "trajectory_to_rows",
    "trajectory_to_turns",
]
