"""Export of Agents' runs as files of messages."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO, Literal

from ....traces import Trace
from ....traces.errors import TraceError
from ....traces.export.values import dump
from .converters import trajectory_to_jsonl_record, trajectory_to_openai_format
from .datasets import chat_of
from .trajectory import Trajectory

Form = Literal["chat", "openai", "jsonl"]


def write_chat(traces: Iterable[Trace], out: BinaryIO, form: Form) -> None:
    """Write Agents' runs as messages.

    - `openai`: a JSON array of one run's messages, from `trajectory_to_openai_format`
    - `jsonl`: a line for each run, with `messages`, `tools` and `metadata`, from `trajectory_to_jsonl_record`
    - `chat`: a line for each run, with `conversation` (role and content only), `agent_name`, `task_type`, `success`

    `openai` writes the first run only. Raises TraceError for a run that is not an Agent's.
    """
    for trace in traces:
        if form == "openai":
            out.write(dump(trajectory_to_openai_format(_trajectory(trace)), indent=True) + b"\n")
            return
        record = record_of(trace)
        out.write(dump(record if form == "jsonl" else chat_of(record)) + b"\n")


def record_of(trace: Trace, facts: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Return the training record of an Agent's run.

    `facts` are added to its metadata. Raises TraceError for a run that is not an Agent's.
    """
    trajectory = _trajectory(trace)
    return trajectory_to_jsonl_record(trajectory, metadata={**_metadata(trace, trajectory), **facts})


def _trajectory(trace: Trace) -> Trajectory:
    if not str(trace.header.get("state")).endswith(":AgentState"):
        raise TraceError(
            f"run {trace.run_id} is not the run of an Agent, so it has no messages; --markdown exports any run",
            code="export",
        )
    return Trajectory.of(trace)


def _metadata(trace: Trace, trajectory: Trajectory[Any]) -> dict[str, Any]:
    agent = (trace.first_state or {}).get("agent") or {}
    return {
        "run_id": trace.run_id,
        "agent_name": agent.get("name"),
        "model": agent.get("model"),
        "task_type": (trace.header.get("task") or {}).get("id"),
        "status": trace.status,
        "stop_reason": trajectory.stop_reason,
        "success": (trace.end.get("task_result") or {}).get("success"),
    }
