"""The sync tool of a step, started by the thread of `decide`.

A change of threads costs more than most steps' own code. So if both `decide` and the tool are sync, the worker thread
writes the decision, starts the call and runs the tool, and a step changes threads once instead of twice. The event loop
awaits the tool's result and writes the outcome, as for any other tool.

The thread does so only in the usual step: one known sync tool without a timeout, and nothing that ends the run. In any
other step, `SameThreadTool` writes nothing and leaves the step to the loop.
"""

from typing import Any, Protocol

from ..concurrency.threads import Job
from ..current_frame import set_frame
from ..effects.call import Call
from ..effects.context import Frame, frame_inside
from ..effects.tools import begin
from ..loop.decision import ActionResult, Decision
from ..module import Module
from .live_run import LiveRun


class Step(Protocol):
    """The part of the runner that `SameThreadTool` needs."""

    run: LiveRun
    module: Module[Any]

    def write_decision(self, decision: Decision) -> Decision:
        """Write a decision, and return the decision as written."""

    def may_be_cancelled(self) -> bool:
        """Return whether the work may have been cancelled."""

    def begin_act(self) -> Frame:
        """Start the `act` phase, and return its frame."""


class SameThreadTool:
    """One step's decision and its action, started in the thread of `decide`.

    `decision` is None unless the thread has started the action.
    """

    decision: Decision | None = None
    frame: Frame
    begun: Call | ActionResult

    def __init__(self, step: Step) -> None:
        self._step = step
        self._deciding: Frame | None = None

    def follow(self, deciding: Frame) -> None:
        """Set the frame of the `decide` that the thread runs."""
        self._deciding = deciding

    def __call__(self, job: Job, value: Any) -> None:
        """Start the action after `decide`, if the step is a usual one."""
        step, deciding = self._step, self._deciding
        run, tools = step.run, step.module.tools
        assert deciding is not None
        if type(value) is not Decision or value.mode != "act" or len(value.actions) != 1 or type(tools) is not dict:
            return
        name = value.actions[0].name
        known = run.tools.get(name)
        if known is None or known[0] is not tools.get(name) or known[2].is_async or known[2].marks.timeout is not None:
            return
        if (
            deciding.open
            or run.stopping is not None
            or run.diverged is not None
            or run.closed
            or step.may_be_cancelled()
        ):
            return
        deciding.over = True
        decision = step.write_decision(value)
        self.frame = step.begin_act()
        set_frame(self.frame)
        begun = begin(self.frame, tools, decision.actions[0])
        if isinstance(begun, Call):
            run.open(begun)
            set_frame(frame_inside(begun))
            begun.at_work(job.go_on(begun.fn, begun.kwargs))
        self.begun, self.decision = begun, decision
