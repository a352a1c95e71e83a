"""The status of a task whose run has ended.

A failure is the fault of the run or of the machine:

| status of the task | meaning | the same command again |
|---|---|---|
| queued, running | not ended yet | runs it, or resumes its run |
| completed | the run completed | keeps it |
| stopped | a budget or another stop criterion ended the run | keeps it |
| failed | the module or the task failed | keeps it |
| waiting | the run waits for a person | keeps it, unless the run was resumed meanwhile |
| errored | the machine, the network or a provider failed each time | resumes it |

After a failure of the machine, a run is resumed or forked. A resumed run gets recorded outcomes and states again. So if
an effect recorded the failure, or a committed step did, the run is forked from the state before the failed step, and
that step's effects run again. This requires that they all are idempotent.
"""

from collections.abc import Mapping
from enum import Enum
from itertools import pairwise
from typing import Any

from ...engine import RunFailure, RunResult, RunStatus, StopReason
from ...errors import EffectError, RefoldError
from ...traces import Step, Trace
from ...traces.stores import Figures, RunRef, TraceStore

COMPLETED, STOPPED, FAILED, WAITING, ERRORED = "completed", "stopped", "failed", "waiting", "errored"
ENDED = (COMPLETED, STOPPED, FAILED, WAITING, ERRORED)
"""The statuses of tasks that no worker claims."""

_MACHINE = frozenset(
    (
        # the trace or its store
        *("TraceWriteError", "TraceLockedError", "StoreError", "SqliteUnavailableError"),
        # memory, descriptors, processes, threads
        *("MemoryError", "BlockingIOError", "NoThreadError", "BrokenProcessPool", "BrokenExecutor"),
        # the network and providers
        *("ConnectionError", "ConnectionResetError", "ConnectionRefusedError", "ConnectionAbortedError"),
        *("BrokenPipeError", "gaierror", "TransientGeneratorError", "RateLimitedError", "UnreachableError"),
        *("TimeoutError", "ConnectTimeout", "ReadTimeout"),
    )
)
"""Classes of errors that a retry of the same task with the same code may overcome."""

_LONGEST = 2000
"""The most characters of an answer or an error in the table; the trace has all of it."""


def status_of(result: RunResult[Any]) -> str:
    """Return the status of the task whose run has this result."""
    if result.status is RunStatus.waiting or result.stop_reason is StopReason.waiting:
        return WAITING
    if result.status is RunStatus.completed:
        return COMPLETED
    if result.status is RunStatus.stopped:
        return STOPPED
    if result.status is RunStatus.failed and not is_of_machine(result.error):
        return FAILED
    return ERRORED


def is_of_machine(error: RunFailure | None) -> bool:
    """Return whether the error of a run's end is the machine's fault."""
    if error is None:
        return False
    kind, _, _ = error.message.partition(":")
    return error.type in _MACHINE or (error.type == EffectError.__name__ and kind in _MACHINE)


def raised_by_machine(error: BaseException) -> bool:
    """Return whether an exception of `run` or `resume` is the machine's fault.

    An exception that the module raises is in the run's result instead.
    """
    return any(cls.__name__ in _MACHINE for cls in type(error).__mro__) or (
        isinstance(error, OSError) and not isinstance(error, RefoldError)
    )


def figures_of(result: RunResult[Any], code: str, before: Mapping[str, Any] | None = None) -> Figures:
    """Return the figures of a task whose run has ended.

    `before` is the usage of earlier attempts. The score is the share of the task's success criteria that passed; None
    if a criterion is unknown, or there is none.
    """
    used = result.usage
    passed = [each.passed for each in result.task_result.criteria]
    known = [each for each in passed if each is not None]
    more = before or {"cost": 0.0, "tokens": 0, "seconds": 0.0, "steps": 0}
    steps = result.steps + more["steps"]
    document: dict[str, Any] = {"stop_reason": str(result.stop_reason), "steps": steps, "code": code}
    if result.final_result is not None:
        document["final_result"] = result.final_result[:_LONGEST]
    if result.waiting:
        document["waiting"] = [each.prompt or each.kind for each in result.waiting]
    return Figures(
        score=sum(known) / len(known) if known and len(known) == len(passed) else None,
        cost=None if used.unpriced and not used.cost else used.cost + more["cost"],
        tokens=used.tokens + more["tokens"],
        seconds=round(used.seconds + more["seconds"], 6),
        error=None if result.error is None else str(result.error)[:_LONGEST],
        result=document,
    )


class Again(Enum):
    """How to continue a run that an earlier claim has started."""

    RESUME = "resume"
    FORK = "fork"
    NOTHING = "nothing"


def failed_step(trace: Trace) -> Step | None:
    """Return the step that failed a run, or None.

    It is unfinished, or it is the last one, and its `reduce` ended the run, as an Agent's does.
    """
    if trace.unfinished is not None or not trace.steps:
        return trace.unfinished
    return trace.steps[-1] if trace.state(-1)["stop_reason"] is not None else None


def how_again(trace: Trace) -> Again:
    """Return how to retry a run.

    A run whose module or task failed is resumed, to the same end: its worker was lost before the task had its status.
    """
    step, error = failed_step(trace), trace.end.get("error")
    if trace.status != RunStatus.failed or step is None or not is_of_machine(error and RunFailure.from_dict(error)):
        return Again.RESUME
    effects = [each for effect in step.effects for each in effect.walk()]
    is_decided = step.committed  # resumed, the run would end as it did
    if not is_decided and not any(each.error is not None and not each.cancelled for each in effects):
        return Again.RESUME
    is_safe = all(each.idempotent for each in effects) and not step.branches
    return Again.FORK if is_safe and trace.first_state is not None else Again.NOTHING


def usage_so_far(store: TraceStore, trace: Trace) -> dict[str, Any]:
    """Return the recorded usage of a run and of its sources.

    The sources are the runs from which this run was forked. The usage of each run is in its last record with a usage.
    """
    used = earlier_usage(store, trace)
    _add(used, last_usage(trace))
    return used


def last_usage(trace: Trace) -> Mapping[str, Any]:
    """Return the usage in a run's last record that has one."""
    found: Mapping[str, Any] = next((each["usage"] for each in reversed(trace.records) if each.data.get("usage")), {})
    return found


def earlier_usage(store: TraceStore, trace: Trace) -> dict[str, Any]:
    """Return the usage of the runs from which a run was forked.

    These runs are earlier attempts of the set at the same task. `steps` are only those before the forks: a step that
    failed and was retried is one step of the task.
    """
    used: dict[str, Any] = {"cost": 0.0, "tokens": 0, "seconds": 0.0, "steps": 0}
    sources = sources_of(store, trace)
    for source, fork in pairwise([*sources, trace]):
        _add(used, last_usage(source))
        used["steps"] += fork.header["parent"]["step"]
    return used


def sources_of(store: TraceStore, trace: Trace) -> list[Trace]:
    """Return the sources of a fork in the store, oldest first."""
    found: list[Trace] = []
    link, seen = trace.header.get("parent"), {trace.run_id}  # a strange trace may name itself as its source
    while link is not None and link["kind"] == "fork" and link["run"] not in seen and store.has(link["run"]):
        seen.add(link["run"])
        found.insert(0, Trace.load(RunRef(store, link["run"])))
        link = found[0].header.get("parent")
    return found


def _add(used: dict[str, Any], usage: Mapping[str, Any]) -> None:
    used["cost"] += usage.get("cost") or 0.0
    used["tokens"] += (usage.get("tokens_in") or 0) + (usage.get("tokens_out") or 0)
    used["seconds"] += usage.get("seconds") or 0.0
