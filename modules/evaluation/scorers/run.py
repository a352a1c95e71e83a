"""An ended run as scorers see it."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....tasks import Task
from ....traces import Step, Trace
from ....traces.errors import TraceError

if TYPE_CHECKING:
    from ...agent import Trajectory
    from ..datasets import Row

NAMES = (
    *("run", "trace", "trajectory", "state", "steps", "status", "stop_reason", "answer", "output", "final_result"),
    *("task_result", "usage", "task", "objective", "inputs", "row", "columns", "target", "expected", "folder"),
)
"""The names that a scorer's parameters may have."""


@dataclass
class JudgeBudget:
    """What judges may still spend, in US dollars.

    None is no limit.
    """

    left: float | None = None


class EvaluatedRun:
    """One recorded run of one row; everything is read from its trace.

    Attributes:
        trace: the run's Trace.
        row: the row of the dataset.
        repeat: the number of the repeat, from 1.
        folder: the evaluation's folder, where judges keep their answers, or None.
        sources: the traces that `trace` continues, the first one first: earlier attempts at the task, or the recorded
            run of a counterfactual.
        earlier: the usage of the earlier attempts, which belongs to the run's usage.
        judging: what judges may still spend.
        judgements: the usage of each judgement of this run, by the judgement's run.
    """

    def __init__(
        self,
        trace: Trace,
        row: "Row",
        repeat: int = 1,
        folder: Path | None = None,
        sources: Sequence[Trace] = (),
        earlier: Sequence[Mapping[str, Any]] = (),
        judging: "JudgeBudget | None" = None,
    ) -> None:
        self.trace = trace
        self.row = row
        self.repeat = repeat
        self.folder = folder
        self.sources = sources
        self.earlier = earlier
        self.judging = judging or JudgeBudget()
        self.judgements: dict[str, Mapping[str, Any]] = {}

    def for_scorer(self) -> "EvaluatedRun":
        """Return the run with a state, end and row of its own.

        So what one scorer changes in them, or in the trace's end, no other scorer and no other sample sees.
        """
        row = self.row
        own = replace(
            row, task=row.task.model_copy(deep=True), target=deepcopy(row.target), columns=deepcopy(row.columns)
        )
        made = EvaluatedRun(self.trace, own, self.repeat, self.folder, self.sources, self.earlier, self.judging)
        made._end = self._end
        made.judgements = self.judgements
        return made

    @cached_property
    def _end(self) -> Mapping[str, Any]:
        """The trace's end, from before any scorer had the trace."""
        return deepcopy(self.trace.end)

    @property
    def run(self) -> "EvaluatedRun":
        """This object."""
        return self

    @cached_property
    def trajectory(self) -> "Trajectory":
        """The Trajectory of an Agent's run; raises TraceError for another module's."""
        from ...agent import Trajectory

        return Trajectory.of(self.trace)

    @property
    def task_output(self) -> Any:
        """What the task returned: an Agent's Trajectory, otherwise the answer."""
        try:
            return self.trajectory
        except TraceError:
            return self.answer

    @cached_property
    def state(self) -> dict[str, Any]:
        """The final state, as a JSON document; {} if there is none."""
        return self.trace.final_state if self.trace.first_state is not None else {}

    @cached_property
    def steps(self) -> Sequence[Step]:
        """The committed steps of the whole run.

        A fork's steps start with its source's steps up to the fork.
        """
        if not self.sources:
            return self.trace.steps
        found, start = list(self.sources[0].steps), 0
        for fork in (*self.sources[1:], self.trace):
            start += (fork.parent or {})["step"]
            found[start:] = fork.steps
        return found

    @property
    def status(self) -> str:
        """The run's status, such as "completed"."""
        return self.trace.status

    @property
    def stop_reason(self) -> str | None:
        """The reason why the run ended."""
        return self.trace.stop_reason

    @property
    def answer(self) -> str | None:
        """The final result; None if the run has none."""
        found = self._end.get("final_result")
        return found if isinstance(found, str) else None

    output = final_result = answer

    @property
    def task_result(self) -> Mapping[str, Any]:
        """The result of the task, with its criteria."""
        found = self._end.get("task_result")
        return deepcopy(found) if isinstance(found, Mapping) else {}

    @property
    def usage(self) -> Mapping[str, Any]:
        """Tokens, cost and seconds of the whole run, with its earlier attempts.

        `steps` is the number of `steps`.
        """
        found = self._end.get("usage")
        own: dict[str, Any] = dict(deepcopy(found)) if isinstance(found, Mapping) else {}
        if not self.earlier:
            return own
        names = {name: value for each in self.earlier for name, value in each.items()} | own
        whole = {
            name: sum(each.get(name) or 0 for each in (*self.earlier, own))
            for name, value in names.items()
            if isinstance(value, int | float)
        }
        return {**own, **whole, "steps": len(self.steps)}

    @property
    def task(self) -> Task:
        """The task of the row."""
        return self.row.task

    @property
    def objective(self) -> str:
        """The task's objective."""
        return self.row.task.objective

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The task's inputs."""
        return self.row.task.inputs

    @property
    def columns(self) -> Mapping[str, Any]:
        """All columns of the row."""
        return self.row.columns

    @property
    def target(self) -> Any:
        """The row's target."""
        return self.row.target

    expected = target
