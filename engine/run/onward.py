"""The sync tool of a step, started by the thread of `decide`.

A change of threads costs more than most steps' own code. So where both `decide` and the tool are sync, the worker goes
on: it writes the decision, starts the call and runs the tool, and the event loop has one change of threads instead of
two. All that can end a step is left to the loop: it awaits the tool's result as it would have without this, finds it
there already, and writes the outcome.

Only the usual step goes on: one known sync tool without a timeout, and nothing that ends the run. `Onward` leaves
anything else to the loop, with nothing written.
"""

from typing import Any, Protocol

from ..concurrency.threads import Job
from ..effects.call import Call
from ..effects.context import Frame, frame_inside
from ..effects.tools import begin
from ..loop.decision import ActionResult, Decision
from ..module import Module
from ..purity import set_frame
from .live_run import LiveRun


class Step(Protocol):
    """The part of the runner that `Onward` needs."""

    run: LiveRun
    module: Module[Any]

    def write_decision(self, decision: Decision) -> Decision:
        """Write a decision; return it as written."""

    def may_be_cancelled(self) -> bool:
        """Return whether the work may have been cancelled."""

    def begin_act(self) -> Frame:
        """Begin the step's second phase, and return its frame."""


class Onward:
    """One step's decision and its action, begun in the thread of `decide`.

    `decision` is None until the thread has gone on.
    """

    decision: Decision | None = None
    frame: Frame
    begun: Call | ActionResult

    def __init__(self, step: Step) -> None:
        self._step = step
        self._deciding: Frame | None = None

    def follow(self, deciding: Frame) -> None:
        """Set the frame of the `decide` after which the thread goes on."""
        self._deciding = deciding

    def __call__(self, job: Job, value: Any) -> None:
        """Go on after `decide`, if the step is a usual one."""
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
