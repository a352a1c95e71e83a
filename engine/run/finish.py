"""The end of a run, and its `end` record.

The order matters. Open calls are cancelled first, because their outcomes must precede the end record. Then the run is
closed, so that no thread writes a record any more. Criteria are evaluated on the closed run, and the end record is
written last. All of this is shielded from cancellation, so that each run that was started gets an end record.
"""

from dataclasses import dataclass
from typing import Any

import anyio

from ...endings import RunStatus, StopReason
from ...errors import TraceWriteError
from ...tasks import CriterionResult, Environment, RunView, Task, TaskResult, evaluate_task
from ..result import RunFailure, RunResult, unfinished
from ..state.model import StateSchema, assemble
from .live_run import LiveRun

_LEAST_SECONDS = 1.0
"""The seconds that criteria have at least, even if the run has used up its time."""


@dataclass
class Outcome:
    """The end of a run, before its record is written."""

    reason: StopReason
    status: RunStatus
    error: RunFailure | None = None
    raised: BaseException | None = None
    """The error to raise again once the end is written: a cancellation, or Ctrl-C."""

    def or_failed(self, failed: TraceWriteError, step: int, phase: str) -> "Outcome":
        """Return the outcome of a run whose trace was lost.

        An earlier error is kept.
        """
        error = self.error or RunFailure.of(failed, step, phase)
        return Outcome(StopReason.unrecoverable_error, RunStatus.failed, error, self.raised)


async def finish(
    run: LiveRun, state: StateSchema | None, outcome: Outcome, phase: str, environment: Environment | None
) -> RunResult:
    """Close open calls, evaluate the task, and write the end.

    `phase` is the phase in which the work ended. The task of a candidate's run is not evaluated.
    """
    with anyio.CancelScope(shield=True):
        return await _finish(run, state, outcome, phase, environment)
    raise AssertionError("a shielded scope is not cancelled")


async def _finish(
    run: LiveRun, state: StateSchema | None, outcome: Outcome, phase: str, environment: Environment | None
) -> RunResult:
    task, evaluate = run.plan.task, run.plan.candidate is None
    if outcome.status is RunStatus.waiting:
        return suspended(run, state)
    patch: list[dict[str, Any]] = []
    try:
        _close_calls(run, outcome)
    except TraceWriteError as failed:
        outcome = outcome.or_failed(failed, run.step, phase)
    if state is not None:
        state, patch = _ended(state, outcome.reason)
    run.shut()
    outcome = _told(outcome, run)
    if evaluate:
        task_result = await _evaluated(run, state, outcome, environment)
    else:
        final = state.final_result if state is not None else None
        task_result = _not_evaluated(task, outcome.reason, final, "the run is an explored candidate")
    usage = run.usage()
    members: dict[str, Any] = {
        "status": outcome.status,
        "stop_reason": outcome.reason,
        "final_result": task_result.final_result,
        "usage": usage.to_dict(),
        "task_result": task_result.model_dump(mode="json") if evaluate else None,
        "error": outcome.error.to_dict() if outcome.error else None,
    }
    if run.redactor is not None:
        for name in ("final_result", "task_result"):
            members[name] = run.redactor.value(members[name])
        if evaluate:
            task_result = TaskResult(**members["task_result"])
    if patch:
        members["patch"] = patch
    try:
        run.write("end", run.step, members)
        trace = run.writer.trace()
    except TraceWriteError as failed:
        outcome = outcome.or_failed(failed, run.step, phase)
        lost = {"success": False, "reason": f"the end could not be written: {failed}"}
        task_result = task_result.model_copy(update=lost)
        trace = run.writer.trace()
    return RunResult(
        outcome.status,
        outcome.reason,
        task_result.final_result,
        state,
        run.step,
        usage,
        task_result,
        trace,
        outcome.error,
    )


def suspended(run: LiveRun, state: StateSchema | None) -> RunResult:
    """Write the end of a suspended run, whose calls stay open."""
    run.shut()
    for call in run.open_calls.values():
        call.let_go()
    usage = run.usage()
    members = {"status": RunStatus.waiting, "stop_reason": StopReason.waiting, "final_result": None}
    run.write("end", run.step, {**members, "usage": usage.to_dict(), "task_result": None, "error": None})
    return RunResult(
        RunStatus.waiting,
        StopReason.waiting,
        None,
        state,
        run.step,
        usage,
        unfinished(run.plan.task.id),
        run.writer.trace(),
        waiting=run.waits.open_requests(),
    )


def _told(outcome: Outcome, run: LiveRun) -> Outcome:
    """Return the outcome with secrets removed from its error."""
    if outcome.error is None or run.redactor is None:
        return outcome
    error = RunFailure.from_dict(run.redactor.value(outcome.error.to_dict()))
    return Outcome(outcome.reason, outcome.status, error, outcome.raised)


def _close_calls(run: LiveRun, outcome: Outcome) -> None:
    """Write an outcome for each open call, and kill its processes."""
    if run.open_calls or outcome.raised is not None:
        run.kill_children()
    out_of_time = outcome.reason is StopReason.budget_time
    why = "the run's time was used up before the call ended" if out_of_time else "the run ended before the call did"
    for call in list(run.open_calls.values()):
        call.cancelled(why)


def _ended(state: StateSchema, reason: StopReason) -> tuple[StateSchema, list[dict[str, Any]]]:
    """Return the last state with its stop reason, and the end's patch."""
    if state.stop_reason == reason:
        return state, []
    return with_reason(state, reason), [{"op": "replace", "path": "/stop_reason", "value": str(reason)}]


def with_reason(state: StateSchema, reason: StopReason) -> StateSchema:
    """Return the state with a stop reason."""
    ended: StateSchema = assemble(type(state), {**state.__dict__, "stop_reason": reason}, ("stop_reason",))
    return ended


async def _evaluated(
    run: LiveRun, state: StateSchema | None, outcome: Outcome, environment: Environment | None
) -> TaskResult:
    task = run.plan.task
    final = state.final_result if state is not None else None
    if outcome.raised is None:
        view = RunView(task, str(outcome.status), str(outcome.reason), final, state, environment)
        left = run.plan.budget.max_runtime_seconds
        if left is None or not task.success_criteria:
            return await evaluate_task(view)
        with anyio.move_on_after(max(left - run.elapsed, _LEAST_SECONDS)):
            return await evaluate_task(view)
        evidence = "not evaluated: the run's time was used up"
    else:
        evidence = "not evaluated: the run was cancelled"
    return _not_evaluated(task, outcome.reason, final, evidence.partition(": ")[2])


def _not_evaluated(task: Task, reason: StopReason, final: str | None, why: str) -> TaskResult:
    evidence = f"not evaluated: {why}"
    criteria = [CriterionResult(criterion=text, passed=None, evidence=evidence) for text in task.success_criteria]
    return TaskResult(
        task_id=task.id,
        success=False,
        stop_reason=str(reason),
        final_result=final,
        criteria=criteria,
        reason=f"its criteria were {evidence}",
    )
