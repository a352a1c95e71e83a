"""The conversation that `--continue` goes on with: of a run's trace, or of a file that `/save` has written."""

import json
from pathlib import Path

from ...modules.agent import Trajectory
from ...traces import SUFFIX, Trace
from ..errors import InputError, one_line
from ..input.finding import find_trace


def conversation(named: str, traces: Path) -> Trajectory:
    """The conversation of a trace or of a saved trajectory; raises InputError where it is neither."""
    path = Path(named)
    if path.is_file() and not path.name.endswith(SUFFIX):
        try:
            return Trajectory.from_dict(json.loads(path.read_text("utf-8")))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{named} holds no saved conversation: {one_line(str(error))[:200]}") from error
    trace = Trace.load(find_trace(named, traces))
    if "AgentState" not in str(trace.header.get("state")):
        raise InputError(f"{named} is no trace of an agent, so that there is no conversation to go on with")
    return Trajectory.of(trace)


def save(trajectory: Trajectory, path: Path) -> None:
    """Writes a conversation to a file, which `--continue` takes; raises InputError where it can't."""
    try:
        path.write_text(json.dumps(trajectory.to_dict(), ensure_ascii=False, indent=1) + "\n", "utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
