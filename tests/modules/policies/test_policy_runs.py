"""Policies in runs: nobody to ask, bounded steps, rules, swapping between turns, and nothing that fails open."""

from pathlib import Path
from typing import Any, ClassVar

import pytest

from refold import Engine
from refold.errors import DivergenceError
from refold.modules.agent import (
    Agent,
    Finish,
    FunctionGenerator,
    GenerationStep,
    Hook,
    Reaction,
    RetryWithFeedback,
    ScriptedGenerator,
    ToolCall,
    ToolStart,
    Trajectory,
    hook,
    tool,
)
from refold.modules.policies import (
    GuardSessionPolicy,
    HeadlessSessionPolicy,
    InteractiveSessionPolicy,
    SessionPolicy,
    register_policy,
    resolve_policy,
)
from refold.modules.tools import ask_user, bash, confirm, python, set_human_prompt_handler, use_workspace
from refold.modules.tools.human.prompts import HumanInputResponse
from refold.testing import check_resume

pytestmark = pytest.mark.anyio


ran: list[str] = []


@tool
async def work(what: str) -> str:
    """Works."""
    ran.append(what)
    return f"did {what}"


def works(*names: str) -> list[ToolCall]:
    return [ToolCall.of(f"c-{name}", "work", {"what": name}) for name in names]


def made(answers: list[Any], policy: Any, **settings: Any) -> Agent:
    settings = {"tools": [work, ask_user, confirm, bash, python], **settings}
    return Agent(name="worker", model=ScriptedGenerator(answers), policy=policy, **settings)


async def run(agent: Agent, goal: str = "go", **options: Any) -> Trajectory:
    ran.clear()
    trajectory = await agent.run(goal, **options)
    before = list(ran)
    assert trajectory.trace is not None
    assert await Engine(agent.module()).averify(trajectory.trace) == []
    assert ran == before
    return trajectory


def results(trajectory: Trajectory) -> list[str]:
    return [message.content for message in trajectory.messages if message.role == "tool"]


class TestHeadless:
    async def test_questions_are_cancelled_at_once(self) -> None:
        calls = [ToolCall.of("q", "ask_user", {"question": "Which?"}), ToolCall.of("y", "confirm", {"action": "go"})]
        trajectory = await run(made([calls, "done"], "headless"))
        asked, confirmed = results(trajectory)
        assert "UserCancelledError" in asked
        assert confirmed == "False"
        assert trajectory.trace is not None
        assert trajectory.trace.status == "completed"

    async def test_somebody_who_would_answer_is_not_asked_by_tools(self) -> None:
        set_human_prompt_handler(lambda prompt: HumanInputResponse(text="me"))
        try:
            trajectory = await run(made([[ToolCall.of("q", "ask_user", {"question": "?"})], "done"], "headless"))
            assert "UserCancelledError" in results(trajectory)[0]
            trajectory = await run(made([[ToolCall.of("q", "ask_user", {"question": "?"})], "done"], "interactive"))
            assert results(trajectory) == ["me"]
        finally:
            set_human_prompt_handler(None)

    async def test_each_run_has_the_full_number_of_steps(self) -> None:
        agent = made([], {"name": "headless", "max_steps": 2})
        for _ in range(3):
            agent.model = ScriptedGenerator([works("a"), works("b"), works("c"), "never"])
            trajectory = await run(agent)
            assert ran == ["a", "b"]
            finish: Any = [step for step in trajectory.steps if type(step).__name__ == "ReactStep"][-1]
            assert finish.reaction == Finish("max_steps=2 reached")
            end: Any = trajectory.events[-1]
            assert end.stop_reason == "finished"

    async def test_a_run_that_is_resumed_counts_on(self, tmp_path: Path) -> None:
        @tool
        async def ask_somebody() -> str:
            """Asks whoever runs it."""
            from refold import ask

            return str(await ask("?", str))

        script = [works("a"), [ToolCall.of("q", "ask_somebody", {})], works("c"), works("d"), "never"]

        def agent() -> Agent:
            engine = {"traces": tmp_path}
            return made(script, HeadlessSessionPolicy(max_steps=3), tools=[work, ask_somebody], engine=engine)

        ran.clear()
        waiting = await agent().run("go")
        assert waiting.trace is not None
        trajectory = await agent().resume(waiting.trace.run_id, "yes")
        assert ran == ["a", "c"]
        assert len(trajectory.get_events_by_type(GenerationStep)) == 3

    async def test_copies_and_concurrent_runs_count_for_themselves(self) -> None:
        agent = made([], {"name": "headless", "max_steps": 2})
        agent.model = FunctionGenerator(lambda messages, params: works(f"w{len(messages)}"))
        copy = agent.with_(name="copy")
        assert copy.policy is agent.policy, "the policy holds in copies, as sub-agents are"
        import anyio

        found: list[Trajectory] = []

        async def one(who: Agent) -> None:
            found.append(await who.run("go", trajectory=Trajectory()))

        async with anyio.create_task_group() as group:
            for who in (agent, copy, agent, copy):
                group.start_soon(one, who)
        assert [len(each.get_events_by_type(GenerationStep)) for each in found] == [2, 2, 2, 2]


class TestRules:
    async def test_deny_goes_over_ask_and_ask_over_allow(self) -> None:
        rules = {"deny": "work(what=bad*)", "ask": "work(what=b*)", "allow": "work"}
        agent = made([works("bad", "better", "good"), "done"], {"name": "headless", "rules": rules})
        trajectory = await run(agent)
        assert ran == ["good"]
        bad, better, good = results(trajectory)
        assert bad.startswith("[POLICY DENIED] work(what=bad*)")
        assert "operator approval required, and no person can give it" in better
        assert good == "did good"

    async def test_what_is_to_be_asked_waits_for_a_person(self, tmp_path: Path) -> None:
        rules = {"ask": "work(what=b*)"}

        def agent() -> Agent:
            return made([works("bob"), "done"], {"name": "interactive", "rules": rules}, engine={"traces": tmp_path})

        ran.clear()
        waiting = await agent().run("go")
        assert waiting.trace is not None
        assert (waiting.trace.status, ran) == ("waiting", [])
        done = await agent().resume(waiting.trace.run_id, "approve")
        assert results(done) == ["did bob"]
        assert await agent().make_engine().averify(waiting.trace.run_id) == []

    @pytest.mark.wide
    def test_a_run_that_asks_can_be_cut_off_anywhere(self) -> None:
        agent = made([works("bob", "ann"), "done"], {"name": "interactive", "rules": {"ask": "work(what=b*)"}})
        check_resume(agent.module, "go", lambda request: "approve", stores=["file"], boundaries=5)

    async def test_a_tool_that_is_denied_is_not_offered_and_is_denied_all_the_same(self) -> None:
        seen: list[list[str]] = []

        def answer(messages: Any, params: Any) -> Any:
            seen.append([each.function.name for each in params.tools or ()])
            return works("x") if len(seen) == 1 else "done"

        agent = made([], {"name": "interactive", "rules": {"deny": ["w*", "bash(*)"]}})
        agent.model = FunctionGenerator(answer)
        trajectory = await run(agent)
        assert seen[0] == ["ask_user", "confirm", "python"]
        assert ran == []
        assert results(trajectory)[0].startswith("[POLICY DENIED] the rule w* holds")

    async def test_commands_are_told_apart_in_a_run(self, tmp_path: Path) -> None:
        calls = [
            ToolCall.of("1", "bash", {"cmd": "echo fine"}),
            ToolCall.of("2", "bash", {"cmd": "echo fine; git push"}),
            ToolCall.of("3", "bash", {"cmd": "cat", "input": "git push"}),
            ToolCall.of("4", "bash", {"cmd": "bash", "input": "git push"}),
            ToolCall.of("5", "bash", {"cmd": "ls", "env": {"BASH_ENV": "x.sh"}}),
            ToolCall.of("6", "python", {"code": "print(6 * 7)"}),
            ToolCall.of("7", "python", {"code": "import os; os.system('git push')"}),
            ToolCall.of("8", "bash", '{"cmd": "git push"'),
        ]
        policy = resolve_policy({"name": "interactive", "rules": {"deny": ["bash(git push *)"]}})
        with use_workspace(tmp_path):
            trajectory = await run(made([calls, "done"], policy))
        denied = [text.startswith("[POLICY DENIED]") for text in results(trajectory)]
        assert denied == [False, True, False, True, False, False, True, True]


class TestResuming:
    """What waits for an approval under one policy is not done by resuming it under another."""

    async def test_a_run_stays_under_its_policy(self, tmp_path: Path) -> None:
        rules = {"ask": "work(what=b*)"}

        def agent(policy: Any) -> Agent:
            return made([works("bob"), "done"], policy, engine={"traces": tmp_path})

        ran.clear()
        waiting = await agent({"name": "interactive", "rules": rules}).run("go")
        assert waiting.trace is not None
        run_id = waiting.trace.run_id
        assert waiting.trace.final_state["agent"]["policy"]["rules"]["ask"] == ["work(what=b*)"]
        for other in (None, "interactive", "headless", {"name": "interactive", "rules": {"ask": "work(what=c*)"}}):
            with pytest.raises(DivergenceError, match="policy"):
                await agent(other).resume(run_id)
        assert ran == []
        done = await agent({"name": "interactive", "rules": rules}).resume(run_id, "approve")
        assert results(done) == ["did bob"]

    def test_what_the_trace_says_of_a_policy_has_no_keys(self) -> None:
        guard = GuardSessionPolicy(judge_model="openai/gpt-4o,api_key=sk-secret-secret,temperature=0.5")
        told = guard.describe()
        assert told["name"] == "guard"
        assert told["judge_model"] == "openai/gpt-4o,temperature=0.5"
        assert "secret" not in str(told)
        model = FunctionGenerator(lambda messages, params: "x", model="mine")
        assert GuardSessionPolicy(judge_model=model).describe()["judge_model"] == "mine"


class TestSwapping:
    async def test_the_policy_of_the_next_turn_is_another(self) -> None:
        agent = made([], None)
        agent.model = FunctionGenerator(lambda chat, params: works("x") if chat[-1].role == "user" else "done")
        await run(agent, "one")
        assert ran == ["x"]
        agent.policy = {"name": "headless", "rules": {"deny": "work"}}
        assert agent.policy.display_label == "auto"
        await run(agent, "two", reset=False)
        assert ran == []
        agent.policy = "interactive"
        assert (agent.policy.display_label, agent.policy.is_autonomous) == ("", False)
        await run(agent, "three", reset=False)
        assert ran == ["x"]
        agent.policy = None
        await run(agent, "four", reset=False)
        assert ran == ["x"]
        assert [m.content for m in agent.history if m.role == "user"] == ["one", "two", "three", "four"]

    def test_a_policy_that_there_is_none_of_is_refused_at_once(self) -> None:
        agent = made([], None)
        for bad in ("headles", {"name": "headless", "max_stps": 3}, {"name": "headless", "max_steps": 0}, 3, object):
            with pytest.raises(ValueError):
                agent.policy = bad
            with pytest.raises(ValueError):
                agent.with_(policy=bad)
        assert agent.policy is None


class Raises(SessionPolicy):
    """Its hooks fail, as a stranger's may."""

    name: ClassVar[str] = "raises"

    @hook(ToolStart)
    def fail(self, event: ToolStart) -> Reaction | None:
        raise LookupError("oops")


async def test_a_policy_whose_hook_fails_lets_nothing_pass() -> None:
    trajectory = await run(made([works("x"), works("y"), "done"], Raises()))
    assert ran == []
    assert all("failed with" in text and text.startswith("[POLICY DENIED]") for text in results(trajectory))


async def test_other_hooks_cannot_take_a_denial_back() -> None:
    eager = Hook(lambda event: None, ToolStart, name="eager")
    agent = made([works("x"), "done"], {"name": "interactive", "rules": {"deny": "work(what=x)"}}, hooks=[eager])
    await run(agent)
    assert ran == []


async def test_a_hook_cannot_show_the_policy_another_call_than_the_one_that_runs() -> None:
    def change(event: ToolStart) -> None:
        event.tool_call = ToolCall.of(event.tool_call.id, "work", {"what": "harmless"})

    policy = {"name": "interactive", "rules": {"deny": "work(what=x)"}}
    trajectory = await run(made([works("x", "y"), "done"], policy, hooks=[Hook(change, ToolStart, name="change")]))
    assert ran == []
    assert all("the hook 'change' failed with UsageError" in text for text in results(trajectory))


async def test_an_id_of_any_length_is_no_way_around_a_policy() -> None:
    calls = [ToolCall.of("c" * 300_000, "work", {"what": "x"})]
    trajectory = await run(made([calls, "done"], {"name": "interactive", "rules": {"deny": "work(what=x)"}}))
    assert ran == []
    assert results(trajectory)[0].startswith("[POLICY DENIED]")


class TestHooks:
    def test_hooks_come_from_all_base_classes_and_subclasses_hide(self) -> None:
        class Base(SessionPolicy):
            name: ClassVar[str] = "base"

            @hook(ToolStart)
            def one(self, event: ToolStart) -> Reaction | None:
                return RetryWithFeedback("base", tool_call_id=event.tool_call.id)

            @hook(ToolStart)
            def two(self, event: ToolStart) -> Reaction | None:
                return None

        class Sub(Base):
            limit: int = 3

            @hook(ToolStart)
            def one(self, event: ToolStart) -> Reaction | None:
                return Finish(f"sub {self.limit}")

        policy = Sub(limit=4)
        assert sorted(each.name for each in policy.hooks) == ["one", "two"]
        assert [each.name for each in policy.hooks] == [each.name for each in policy.get_hooks()]
        (one,) = [each for each in policy.hooks if each.name == "one"]
        assert one.func(ToolStart(tool_call=works("x")[0])) == Finish("sub 4")

    async def test_the_hooks_of_a_subclass_count_however_it_gives_them(self) -> None:
        def no(event: ToolStart) -> Reaction | None:
            return RetryWithFeedback("no", tool_call_id=event.tool_call.id)

        class ByProperty(GuardSessionPolicy):
            @property
            def hooks(self) -> list[Hook]:
                return [*super().hooks, Hook(no, ToolStart, name="no")]

        class ByMethod(GuardSessionPolicy):
            def get_hooks(self) -> list[Hook]:
                return [*super().get_hooks(), Hook(no, ToolStart, name="no")]

        class Both(ByMethod):
            @property
            def hooks(self) -> list[Hook]:
                return [*super().hooks, Hook(no, ToolStart, name="no")]

        judge = FunctionGenerator(lambda messages, params: '{"reason": "fine", "action": "allow"}')
        for cls in (ByProperty, ByMethod, Both):
            policy = cls(judge_model=judge)
            agent = made([works("x"), "done"], policy)
            assert [hook.name for hook in agent.all_hooks] == ["stop_on_max_steps", "process_judge", "no"]
            await run(agent)
            assert ran == []
        assert [hook.name for hook in ByProperty(judge_model=judge).get_hooks()][-1] == "no"

        class Plain(SessionPolicy):
            def get_hooks(self) -> list[Hook]:
                return [*super().get_hooks(), Hook(no, ToolStart, name="no")]

        assert [hook.name for hook in Plain().hooks] == ["no"]

    async def test_a_hook_is_bound_to_its_policy(self) -> None:
        class Limited(SessionPolicy):
            name: ClassVar[str] = "limited"
            bad: str

            @hook(ToolStart)
            async def check(self, event: ToolStart) -> Reaction | None:
                bad = self.bad in event.tool_call.arguments
                return RetryWithFeedback(f"not {self.bad}", tool_call_id=event.tool_call.id) if bad else None

        register_policy(Limited, replace=True)
        trajectory = await run(made([works("x", "y"), "done"], {"name": "limited", "bad": "x"}))
        assert ran == ["y"]
        assert results(trajectory)[0] == "[POLICY DENIED] not x"

    def test_an_interactive_policy_without_rules_has_no_hooks(self) -> None:
        assert InteractiveSessionPolicy().hooks == []
        assert made([], "interactive").all_hooks == []


@pytest.mark.wide
def test_the_agent_does_not_load_policies_unless_it_is_given_one() -> None:
    import subprocess
    import sys

    code = """
import sys
import refold.modules.agent as a
a.Agent(name="x")
print("refold.modules.policies" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
