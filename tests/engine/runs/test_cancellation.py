"""One result an action, whatever tools do to tasks; and a cancellation of the run ends it, whoever keeps it back."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RunResult,
    RunStatus,
    RuntimeBudget,
    StateSchema,
    StopReason,
    Task,
    perform,
)
from refold.engine import run_actions
from refold.modules.agent import tool
from refold.modules.agent.tools import actions_of


class Seen(StateSchema):
    results: list[list[Any]] = []


class Custom(BaseException):
    pass


async def pay() -> str:
    await anyio.sleep(0)
    await anyio.sleep(0)
    return "paid"


def pay_in_thread() -> str:
    return "paid"


async def cancels_itself() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel("enough")
    await anyio.sleep(0)
    return "not cancelled"


async def cancels_itself_and_returns() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "returned"


async def cancels_itself_and_goes_on() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    try:
        await anyio.sleep(0)
    except asyncio.CancelledError:
        return "went on"
    return "not cancelled"


async def cancels_itself_and_fails() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    try:
        await anyio.sleep(0)
    except asyncio.CancelledError:
        raise ValueError("something else") from None
    return "not cancelled"


def _siblings() -> list["asyncio.Task[Any]"]:
    """The tasks of other tools: those of this test's tools, and no others."""
    mine = asyncio.current_task()
    return [t for t in asyncio.all_tasks() if t is not mine and t.get_name() == "refold tool"]


async def cancels_its_siblings() -> str:
    await anyio.sleep(0)
    for task in _siblings():
        task.cancel()
    return "cancelled them"


async def cancels_what_has_not_started() -> str:
    for task in _siblings():
        task.cancel()
    return "cancelled them"


async def raises_cancelled() -> str:
    raise asyncio.CancelledError("by hand")


def raises_cancelled_in_a_thread() -> str:
    raise asyncio.CancelledError("by hand")


async def awaits_what_was_cancelled() -> str:
    task = asyncio.ensure_future(asyncio.sleep(60))
    await asyncio.sleep(0)
    task.cancel()
    await task
    return "not cancelled"


async def leaves() -> str:
    raise SystemExit(3)


async def interrupted() -> str:
    raise KeyboardInterrupt


def interrupted_in_a_thread() -> str:
    raise KeyboardInterrupt


async def crashes() -> str:
    await anyio.sleep(0)
    raise Custom("crashed")


def crashes_in_a_thread() -> str:
    raise Custom("crashed")


async def crashes_in_a_group() -> str:
    async with anyio.create_task_group() as group:
        group.start_soon(crashes)
    return "not crashed"


WELL = [pay, pay_in_thread]
ODD = [
    cancels_itself,
    cancels_itself_and_returns,
    cancels_itself_and_goes_on,
    cancels_itself_and_fails,
    cancels_its_siblings,
    cancels_what_has_not_started,
    raises_cancelled,
    raises_cancelled_in_a_thread,
    awaits_what_was_cancelled,
    leaves,
    crashes,
    crashes_in_a_thread,
    crashes_in_a_group,
]
ENDING = [interrupted, interrupted_in_a_thread]


class Acts(AgentModule[Seen]):
    """Does one step of actions, and a second of one payment."""

    def __init__(self, tools: list[Callable[..., Any]], parallel: bool = True, own_act: bool = False) -> None:
        self.tools = {tool.__name__: tool for tool in [*tools, pay]}
        self.names = [tool.__name__ for tool in tools]
        self.parallel = parallel
        self.own_act = own_act

    def init_state(self, task: str, **inputs: Any) -> Seen:
        return Seen()

    async def decide(self, state: Seen) -> Decision:
        if state.current_step == 2:
            return Decision.final("done")
        names = self.names if not state.current_step else ["pay"]
        return Decision.act([Action(name) for name in names], parallel=self.parallel)

    def reduce(self, state: Seen, decision: Decision, observation: Observation) -> None:
        if decision.mode == "act":
            state.results.append([[r.name, r.output, r.error_type] for r in observation.results])


class ActsItself(Acts):
    async def act(self, state: Seen, decision: Decision) -> Observation:
        return await run_actions(self.tools, decision)


@example(tools=[pay, cancels_what_has_not_started, pay], parallel=True, kind=Acts)
@given(
    tools=st.lists(st.sampled_from(WELL + ODD), min_size=1, max_size=4),
    parallel=st.booleans(),
    kind=st.sampled_from([Acts, ActsItself]),
)
def test_each_action_has_its_result_whatever_tools_do_to_tasks(
    tools: list[Callable[..., Any]], parallel: bool, kind: type[Acts]
) -> None:
    module = kind(tools, parallel)
    result = Engine(module).run("t")
    assert result.error is None, result.error
    assert result.status is RunStatus.completed
    assert isinstance(result.state, Seen)
    first, second = result.state.results
    assert [name for name, _, _ in first] == [tool.__name__ for tool in tools]
    assert all((output is None) != (error is None) for _, output, error in first)
    assert second == [["pay", "paid", None]], "the next step is not hit by what was asked in this one"
    if not {cancels_its_siblings, cancels_what_has_not_started} & set(tools):
        assert all(output == "paid" for name, output, _ in first if name.startswith("pay"))
    result.trace.check()
    assert Engine(module).verify(result.trace) == []
    if cancels_what_has_not_started not in tools:  # a call that was never made has nothing to reuse
        again = Engine(module).fork(result.trace, 0, reuse_effects=True)
        assert again.state == result.state, "what was recorded gives the same results"


@given(
    well=st.lists(st.sampled_from(WELL), max_size=3),
    ending=st.sampled_from(ENDING),
    place=st.integers(0, 3),
    parallel=st.booleans(),
)
def test_what_is_more_than_an_exception_ends_the_run_and_is_raised_on_with_its_result(
    well: list[Callable[..., Any]], ending: Callable[..., Any], place: int, parallel: bool
) -> None:
    tools = [*well[:place], ending, *well[place:]]
    with pytest.raises(KeyboardInterrupt) as raised:
        Engine(Acts(tools, parallel)).run("t")
    result: RunResult = raised.value.result  # type: ignore[attr-defined]
    assert result.status is RunStatus.cancelled
    result.trace.check()
    assert result.steps == 0
    assert result.trace.records[-1].kind == "end"


def test_a_hook_that_cancels_its_own_task_fails_the_run_in_words() -> None:
    class Odd(Acts):
        async def decide(self, state: Seen) -> Decision:
            await cancels_itself()
            return Decision.final("x")

    result = Engine(Odd([pay])).run("t")
    assert (result.status, result.stop_reason) == (RunStatus.failed, StopReason.unrecoverable_error)
    assert result.error is not None
    assert "decide was cancelled by something other than its run" in result.error.message


def test_a_candidate_that_cancels_its_own_task_fails_the_run_in_words() -> None:
    class Odd(Acts):
        async def decide(self, state: Seen, candidate: int | None = None) -> Decision:
            if candidate is None:
                return Decision.branch(3)
            if candidate == 1:
                await cancels_itself()
            return Decision.final("x")

    result = Engine(Odd([pay])).run("t")
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert "was cancelled by something other than its run" in result.error.message


# a cancellation of the run


async def swallows() -> str:
    try:
        await anyio.sleep(60)
    except BaseException:
        return "swallowed"
    return "slept"


async def swallows_often() -> str:
    for _ in range(20):
        try:
            await anyio.sleep(60)
        except BaseException:
            continue
    return "swallowed"


async def fails_instead() -> str:
    try:
        await anyio.sleep(60)
    except BaseException:
        raise ConnectionError("the server is gone") from None
    return "slept"


async def leaves_instead() -> str:
    try:
        await anyio.sleep(60)
    except BaseException:
        raise SystemExit(1) from None
    return "slept"


async def cancelled_anew() -> str:
    try:
        await anyio.sleep(60)
    except BaseException:
        raise anyio.get_cancelled_exc_class()("mine") from None
    return "slept"


async def by_a_group() -> str:
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 60)
        group.start_soon(fails_instead)
    return "slept"


def sleeps_in_a_thread() -> str:
    threading.Event().wait(60)
    return "slept"


async def performs() -> str:
    return str(await perform(fails_instead))


async def performs_and_hides() -> str:
    try:
        return str(await perform(swallows))
    except BaseException as error:
        return f"hid {type(error).__name__}"


KEEPERS = [swallows, swallows_often, fails_instead, leaves_instead, by_a_group, performs, performs_and_hides]
ON_ASYNCIO = [*KEEPERS, cancelled_anew]


class Cancels:
    """Ways to cancel a run from outside; each gives what the run raised."""

    @staticmethod
    async def once(run: Callable[[], Any], ready: anyio.Event) -> BaseException:
        task = asyncio.ensure_future(run())
        await ready.wait()
        await asyncio.sleep(0.01)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=250)
        assert done, "the run goes on"
        assert task.cancelled()
        try:
            await task
        except BaseException as error:
            return error
        raise AssertionError("nothing was raised")

    @staticmethod
    async def by_a_timeout(run: Callable[[], Any], ready: anyio.Event) -> BaseException:
        caught: list[BaseException] = []

        async def kept() -> Any:
            try:
                return await run()
            except BaseException as error:
                caught.append(error)
                raise

        async def limited() -> Any:
            async with asyncio.timeout(None) as limit:

                async def pass_time() -> None:
                    await ready.wait()
                    limit.reschedule(asyncio.get_running_loop().time() + 0.01)

                timing.append(asyncio.ensure_future(pass_time()))
                return await kept()

        timing: list[asyncio.Future[None]] = []
        with pytest.raises(TimeoutError):
            await limited()
        await timing[0]
        return caught[0]

    @staticmethod
    async def by_a_scope(run: Callable[[], Any], ready: anyio.Event) -> BaseException:
        caught: list[BaseException] = []
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def later() -> None:
                    await ready.wait()
                    await anyio.sleep(0.01)
                    scope.cancel()

                group.start_soon(later)
                try:
                    await run()
                except BaseException as error:
                    caught.append(error)
                    raise
        assert scope.cancelled_caught
        return caught[0]


def told(module: AgentModule[Any], how: str, after: str = "intent") -> RunResult:
    """The result that stands on what a run raises that is cancelled after a record of that kind."""

    async def main() -> RunResult:
        begun = anyio.Event()

        def seen(record: Any) -> None:
            if record.kind == after:
                begun.set()

        engine = Engine(module, observers=[seen])
        error = await getattr(Cancels, how)(lambda: engine.arun(Task(objective="t", success_criteria=["x"])), begun)
        assert isinstance(error, anyio.get_cancelled_exc_class())
        result: RunResult = error.result  # type: ignore[attr-defined]
        return result

    made: RunResult = anyio.run(main)
    return made


WAYS = ["once", "by_a_timeout", "by_a_scope"]


def check_cancelled(result: RunResult) -> None:
    result.trace.check()
    assert (result.status, result.stop_reason) == (RunStatus.cancelled, StopReason.cancelled)
    assert result.steps == 0, "no step is committed after the cancellation"
    assert result.trace.records[-1].kind == "end"


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("tools", [*([k] for k in ON_ASYNCIO), [pay, fails_instead, swallows], [sleeps_in_a_thread]])
def test_a_cancellation_is_not_lost_in_a_tool(tools: list[Any], how: str) -> None:
    for kind in (Acts, ActsItself):
        result = told(kind(tools), how)
        check_cancelled(result)
        step = result.trace.unfinished
        assert step is not None
        for found in step.effects:
            assert not found.open
            assert found.error is None or found.cancelled, "an error that a cancellation brought is not the tool's own"


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("keeper", [fails_instead, leaves_instead, by_a_group])
def test_the_catch_of_an_agents_tool_does_not_take_a_cancellation_for_an_error(keeper: Any, how: str) -> None:
    module = Acts([])
    module.tools, module.names = dict(actions_of([tool(keeper, catch=True)])), [keeper.__name__]
    result = told(module, how)
    check_cancelled(result)
    step = result.trace.unfinished
    assert step is not None
    assert [effect.cancelled for effect in step.effects] == [True]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("keeper", ON_ASYNCIO)
@pytest.mark.parametrize("hook", ["init_state", "decide", "act"])
def test_a_cancellation_is_not_lost_in_a_hook(hook: str, keeper: Any, how: str) -> None:
    async def init_state(self: Any, task: str, **inputs: Any) -> Seen:
        await keeper()
        return Seen()

    async def decide(self: Any, state: Seen) -> Decision:
        await keeper()
        return Decision.final("done")

    async def act(self: Any, state: Seen, decision: Decision) -> Observation:
        await keeper()
        return await run_actions(self.tools, decision)

    made = {"init_state": init_state, "decide": decide, "act": act}[hook]
    module = type("Keeps", (Acts,), {hook: made})([pay])
    check_cancelled(told(module, how, "header"))


@pytest.mark.parametrize("keeper", KEEPERS)
def test_a_deadline_is_not_lost_either(keeper: Any) -> None:
    engine = Engine(Acts([keeper, pay]), budget=RuntimeBudget(max_runtime_seconds=0.2))
    result: RunResult = anyio.run(lambda: engine.arun("t"))
    assert (result.status, result.stop_reason) == (RunStatus.stopped, StopReason.budget_time)
    assert result.steps == 0


def test_a_tool_of_its_own_timeout_is_no_cancellation_of_the_run() -> None:
    async def patient() -> str:
        try:
            async with asyncio.timeout(0.01):
                return await perform(slow)
        except TimeoutError:
            return "timed out"

    async def patient_with_wait_for() -> str:
        try:
            return await asyncio.wait_for(perform(slow), 0.01)
        except TimeoutError:
            return "timed out"

    async def slow() -> str:
        await anyio.sleep(60)
        return "slept"

    for tools in ([patient], [patient, patient_with_wait_for]):
        result = Engine(Acts(tools)).run("t")
        assert isinstance(result.state, Seen)
        assert [r[1] for r in result.state.results[0]] == ["timed out"] * len(tools)
