"""A run's progress, folded from records: budgets, tokens, what is under way, and time over several attempts."""

import io
import re
import time
from typing import Any

import pytest
from rich.console import Console, Group

from refold.cli.agent.chat.status import StatusLine
from refold.cli.render import live
from refold.cli.render.bars import bar, live_lines
from refold.cli.render.live import LiveView
from refold.cli.render.progress import Done, Progress
from refold.traces import Record
from refold.traces.file.writer import TraceWriter


class Script:
    """Feeds records to a progress as an engine would."""

    def __init__(self) -> None:
        self.writer = TraceWriter.create(None)
        self.progress = Progress()

    def __call__(self, kind: str, step: int, at: float, **members: Any) -> Done | None:
        record: Record = self.writer.append(kind, step, at, members)
        return self.progress.take(record)


def test_a_run_over_two_attempts() -> None:
    say = Script()
    say("header", 0, 100.0, run_id="r", module="m:M", budget={"max_steps": 3})
    assert say.progress.doing() == "deciding"
    say("decide", 0, 101.0, decision={"mode": "act", "actions": [{"name": "a"}, {"name": "b"}]})
    say("intent", 0, 101.0, phase="act", name="a", action="s0a0")
    say("intent", 0, 101.0, phase="act", name="b", action="s0a1")
    assert say.progress.doing() == "b and 1 more"
    say("outcome", 0, 102.0, intent=2, result=1, usage={"tokens_in": 3, "tokens_out": 4, "cost": 0.5})
    say(
        "outcome",
        0,
        102.0,
        intent=3,
        error={"type": "E", "message": "m"},
        usage={"tokens_in": 1, "tokens_out": 0, "cost": None},
    )
    patch = [{"op": "replace", "path": "/current_step", "value": 1}, {"op": "add", "path": "/x", "value": 1}]
    done = say("commit", 0, 103.5, patch=patch, observation={"results": [4, 5]})
    decision = {"mode": "act", "actions": [{"name": "a"}, {"name": "b"}]}
    assert done == Done(0, decision, [None, "E: m"], 1, 3.5, 8)
    assert say.progress.seconds(110.0) == 10.0
    say("resume", 1, 200.0, attempt=2, budget={"max_steps": 9})
    assert say.progress.seconds(201.0) == 4.5
    assert (say.progress.steps, say.progress.tokens, say.progress.cost, say.progress.unpriced) == (1, 8, 0.5, 1)
    assert say.progress.budget == {"max_steps": 9}
    say("end", 1, 202.0, status="completed")
    assert say.progress.seconds(999.0) == 5.5


def test_bars_are_full_at_the_limit_and_not_before() -> None:
    assert bar(0, 10).plain == "─" * 10
    assert bar(0.99, 10).plain == "━" * 9 + "─"
    assert bar(1, 10).plain == bar(7, 10).plain == "━" * 10


def test_bars_and_changed_paths_stand_below_a_live_run() -> None:
    say = Script()
    budget = {"max_steps": 4, "max_runtime_seconds": 60.0, "max_tokens": None, "max_cost_usd": 2.0}
    say("header", 0, 100.0, run_id="r", module="m:M", budget=budget)
    assert shown(say.progress, 106.0) == ["steps 0 of 4", "time 6.0 s of 1 min 00 s", "cost 0.0000 USD of 2.0"]
    say("decide", 0, 101.0, decision={"mode": "act", "actions": []})
    paths = ["/current_step", "/a", "/a", "/b\x1b[31m", "/c", "/d", "/e"]
    say("commit", 0, 103.5, patch=[{"op": "add", "path": path, "value": 1} for path in paths])
    assert shown(say.progress, 106.0)[-1] == "changed  /a  /b\\u001b[31m  /c  /d and 1 more"


def shown(progress: Progress, now: float) -> list[str]:
    """What a terminal shows, without the bars' drawing."""
    out = Console(file=io.StringIO(), width=80)
    out.print(Group(*live_lines(progress, now, 80)))
    assert isinstance(out.file, io.StringIO)
    return [re.sub(" +[━─]+ +", " ", line).strip() for line in out.file.getvalue().splitlines()]


def test_an_agents_status_line_has_them_too() -> None:
    say = Script()
    say("header", 0, 100.0, run_id="r", module="m:M", budget={"max_steps": 4})
    written = io.StringIO()
    out = Console(file=written, width=80)
    out.print(StatusLine(out, lambda: "running bash", say.progress).renderable())
    assert "step 0  running bash" in written.getvalue()
    assert "0 of 4" in written.getvalue()


class OneAtATime(io.StringIO):
    """A terminal that counts what is written to it while nobody holds the lock of the view."""

    def __init__(self) -> None:
        super().__init__()
        self.view: LiveView | None = None
        self.drawn = self.unlocked = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.view is not None and not self.view._ended.is_set():
            self.drawn += 1
            self.unlocked += not self.view._lock.locked()
        return super().write(text)


def test_lines_and_bars_are_drawn_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich erases as many lines as it drew last: two threads that draw at once leave some of them on the screen."""
    monkeypatch.setattr(live, "is_terminal", lambda: True)
    monkeypatch.setattr(live, "_EVERY", 0.001)
    screen, writer = OneAtATime(), TraceWriter.create(None)
    view = LiveView(Console(file=screen, width=80, force_terminal=True))
    with view:
        screen.view = view
        view(writer.append("header", 0, 100.0, {"run_id": "r", "module": "m:M", "budget": {"max_steps": 3}}))
        for k in range(30):
            view(writer.append("decide", k, 101.0, {"decision": {"mode": "act", "actions": [{"name": "漢字"}]}}))
            patch = [{"op": "add", "path": f"/x{n}", "value": 1} for n in range(k % 3)]  # bars of different heights
            view(writer.append("commit", k, 102.0, {"patch": patch, "observation": {"results": []}}))
        expected = screen.drawn + 5
        while screen.drawn < expected:  # the other thread draws
            time.sleep(0.001)
    assert screen.unlocked == 0
