"""The conversation for `--continue`, from a trace or a file of `/save`."""

import json
from pathlib import Path

from ....modules.agent import Trajectory
from ....traces import Trace
from ....traces.file.append_only import SUFFIX
from ...errors import InputError, one_line
from ...input.find_trace import find_run


def conversation(named: str, traces: str) -> Trajectory:
    """Return the conversation of a trace or of a saved file.

    Raises `InputError` if the file is neither.
    """
    path = Path(named)
    if path.is_file() and not path.name.endswith(SUFFIX):
        try:
            return Trajectory.from_dict(json.loads(path.read_text("utf-8")))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{named} holds no saved conversation: {one_line(str(error))[:200]}") from error
    trace = Trace.load(find_run(named, traces))
    if "AgentState" not in str(trace.header.get("state")):
        raise InputError(f"{named} is not the trace of an agent, so there is no conversation to continue")
    return Trajectory.of(trace)


def save(trajectory: Trajectory, path: Path) -> None:
    """Write a conversation for `--continue`; raises `InputError` if that fails."""
    try:
        path.write_text(json.dumps(trajectory.to_dict(), ensure_ascii=False, indent=1) + "\n", "utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}; name another file") from None
    except ValueError as error:  # a NUL character in the name
        raise InputError(f"{path} cannot be written: {error}; name another file") from None
