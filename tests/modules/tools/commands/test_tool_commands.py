"""`bash` and `python`: killed whole, output kept, capped and streamed, no secret seen; nothing is left behind."""

import os
from pathlib import Path
from zlib import crc32

import anyio
import psutil
import pytest
from processes import descriptors
from timing import SOON, StandingClock, clock_stands_until

from refold import AgentModule, Decision, Engine, Observation, RuntimeBudget, StateSchema
from refold.modules.agent import ToolCall
from refold.modules.agent.tools import action_for, actions_of
from refold.modules.tools import Limits, LocalSandbox, bash, python, use_workspace
from refold.modules.tools.sandbox import command as sandbox_command
from refold.traces import Record

MARK = "REFOLD_TEST_MARK"


def seconds(mark: str) -> str:
    """About a minute: a number of the mark's own, by which `sleep` itself is found, which has no mark."""
    return f"60.{crc32(mark.encode()):010d}"


def spawning(mark: str) -> str:
    """A command that starts children in every way: in its group, in sessions of their own, and orphaned ones."""
    sleeper = f"sh -c 'sleep {seconds(mark)}; : {mark}'"
    orphans = f'(setsid sh -c "({sleeper} &); {sleeper}" >/dev/null 2>&1 &)'
    return f"echo begun; {sleeper} & (setsid {sleeper} &) ; {orphans} ; nohup {sleeper} >/dev/null 2>&1 & {sleeper}"


def marked(mark: str) -> list[str]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or [])
        if (mark in line or seconds(mark) in line) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


async def test_a_command_gives_its_output_as_it_came(tmp_path: Path) -> None:
    with use_workspace(tmp_path):
        assert await bash("echo one; echo two >&2; echo three") == "one\ntwo\nthree\n"
        assert await bash("cat; pwd", input="é\n") == f"é\n{tmp_path}\n"
        assert await bash("cat") == "", "stdin is empty, and not the terminal's"
        assert await bash("echo $A", env={"A": "b c"}) == "b c\n"
        (tmp_path / "sub").mkdir()
        assert await bash("pwd", cwd="sub") == f"{tmp_path}/sub\n"
        assert await bash("printf '\\377x'") == "\ufffdx"
        assert await python("import sys; print('ä', sys.executable)") == f"ä {os.sys.executable}\n"  # type: ignore[attr-defined]


async def test_a_command_that_fails_is_an_error_with_its_output(tmp_path: Path) -> None:
    with use_workspace(tmp_path):
        with pytest.raises(RuntimeError, match=r"^Command failed \(3\):\nout\nerr\n$"):
            await bash("echo out; echo err >&2; exit 3")
        with pytest.raises(RuntimeError, match=r"(?s)Command failed \(1\):.*ZeroDivisionError"):
            await python("1/0")
        with pytest.raises(ValueError, match="above 0"):
            await bash("true", timeout=0)
        with pytest.raises(NotADirectoryError):
            await bash("true", cwd="none")


async def test_the_parents_secrets_are_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-value")
    with use_workspace(tmp_path):
        assert "very-secret" not in await bash("env; set")
        assert "very-secret" not in await python("import os; print(os.environ)")


async def test_output_is_capped_from_its_middle(tmp_path: Path) -> None:
    sandbox = LocalSandbox(tmp_path, Limits(output_bytes=10_000))
    done = await sandbox.exec(["bash", "-c", "echo first; yes | head -c 5000000; echo last"])
    assert done.output.startswith("first\n")
    assert done.output.endswith("last\n")
    assert len(done.output) < 10_100
    assert done.left_out == 5_000_011 - 10_000


async def test_what_is_left_in_the_background_does_not_hold_the_call_and_is_killed(tmp_path: Path) -> None:
    mark = f"{MARK}-left"
    with use_workspace(tmp_path):
        output = await bash(f"(setsid sh -c 'sleep {seconds(mark)}; : {mark}' &) ; echo done")
    assert output.startswith("done\n")
    assert "left in the background" in output
    assert not marked(mark)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_a_refold_inside_of_a_command_has_started_is_killed_with_it(tmp_path: Path) -> None:
    mark = f"{MARK}-nested"
    inner = f"(setsid sh -c 'sleep {seconds(mark)}; : {mark}' >/dev/null 2>&1 &) ; sleep 60"
    code = (
        "import anyio\nfrom refold.modules.tools import LocalSandbox\n"
        f"async def main():\n    await LocalSandbox('.').exec(['sh', '-c', {inner!r}])\nanyio.run(main)"
    )
    with use_workspace(tmp_path), pytest.raises(TimeoutError):
        await python(code, timeout=4)
    assert not marked(mark)


async def test_a_timeout_beyond_what_a_clock_can_measure_is_none(tmp_path: Path) -> None:
    with use_workspace(tmp_path):
        assert await bash("echo done", timeout=10**400) == "done\n"


async def test_a_timeout_kills_whole_and_keeps_the_output(tmp_path: Path) -> None:
    mark = f"{MARK}-timeout"

    def all_sleep() -> bool:
        return sum(line.startswith("sleep ") for line in marked(mark)) == 6

    with (
        clock_stands_until(all_sleep, sandbox_command),
        use_workspace(tmp_path),
        pytest.raises(TimeoutError, match=r"(?s)after 1 s.*begun") as raised,
    ):
        await bash(f"trap '' TERM INT HUP; {spawning(mark)}", timeout=1)
    assert "begun" in str(raised.value)
    assert not marked(mark)


async def test_after_forty_calls_cut_short_no_process_and_no_descriptor_is_left(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    mark, count = f"{MARK}-forty", 40 if anyio_backend_name == "asyncio" else 20
    with use_workspace(tmp_path):
        await bash("true")
        before, threads = descriptors(), psutil.Process().num_threads()
        sandbox = LocalSandbox(tmp_path)
        ended = {"timeout": 0, "cancelled": 0}

        async def one(number: int) -> None:
            if number % 2:
                done = await sandbox.exec(["bash", "-c", spawning(mark)], timeout=0.05 * (number % 7))
                ended["timeout"] += done.timed_out
            else:
                with anyio.move_on_after(0.05 * (number % 7)) as scope:
                    await sandbox.exec(["bash", "-c", spawning(mark)])
                ended["cancelled"] += scope.cancelled_caught

        for start in range(0, count, 10):
            async with anyio.create_task_group() as group:
                for number in range(start, start + 10):
                    group.start_soon(one, number)
        assert ended == {"timeout": count // 2, "cancelled": count // 2}
        assert marked(mark) == []
        assert descriptors() <= before
        assert psutil.Process().num_threads() <= threads + 12, "threads are used again"
        assert not [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]


class State(StateSchema):
    calls: int = 0


class OneCall(AgentModule[State]):
    tools = actions_of([bash])

    def __init__(self, command: str) -> None:
        self.command = command

    def init_state(self, task: str) -> State:
        return State()

    def decide(self, state: State) -> Decision:
        if state.calls:
            return Decision.final("done")
        return Decision.act([action_for(ToolCall.of("c1", "bash", {"cmd": self.command}))])

    def reduce(self, state: State, decision: Decision, observation: Observation) -> None:
        state.calls += 1


def begun(record: Record) -> bool:
    """Whether the record holds the first output of the command."""
    return record.kind == "event" and b"begun" in record.raw


def test_a_budget_that_ends_a_run_kills_its_commands_and_keeps_their_output(tmp_path: Path) -> None:
    mark = f"{MARK}-budget"
    before = descriptors()
    with use_workspace(tmp_path):
        output = list[Record]()
        engine = Engine(
            OneCall(spawning(mark)),
            budget=RuntimeBudget(max_runtime_seconds=SOON),
            clock=StandingClock(lambda: output),
            observers=[lambda record: output.append(record) if begun(record) else None],
        )
        result = engine.run("x")
    assert result.stop_reason == "budget_time"
    assert marked(mark) == []
    events = [
        record["data"]["text"] for record in result.trace.records if record.kind == "event" and "text" in record["data"]
    ]
    assert events == ["begun\n"]
    assert engine.verify(result.trace) == []
    assert descriptors() <= before


def test_secrets_in_output_are_not_in_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-value")
    (tmp_path / "f").write_text("the key is sk-very-secret-value\n")
    with use_workspace(tmp_path):
        result = Engine(OneCall("cat f")).run("x")
    assert "very-secret" not in str([dict(record) for record in result.trace.records])
