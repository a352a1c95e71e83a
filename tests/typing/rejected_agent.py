"""Calls of an Agent that the type checker must refuse, each marked with its error's code; checked and never run."""

from refold.modules import agent as names
from refold.modules.agent import Agent, AgentJudge, Finish, Message, ScriptedGenerator, ToolEnd, hook, tool
from refold.modules.agent.stopping import step_count, token_usage


@tool
def double(n: int) -> int:
    """Doubles."""
    return 2 * n


double("three")  # expect: arg-type
double(3).upper()  # expect: attr-defined
agent = Agent(name="t", model=ScriptedGenerator([]))
Agent(name="t", max_step=3)  # expect: call-overload
agent.stream(3)  # expect: arg-type
several = agent.stream_batch(["one goal"], concurrency="two")  # expect: arg-type
step_count("three")  # expect: arg-type
token_usage(3, mode="all")  # expect: arg-type
hook("ToolEnd")  # expect: arg-type
Message("robot", "hello")  # expect: arg-type
Finish(3)  # expect: arg-type
AgentJudge(model="openai/gpt-4o")  # expect: call-arg
ToolEnd(result="x")  # expect: call-arg
typo = names.Agnet  # expect: attr-defined
typo = names.hooks.tool_metric  # expect: attr-defined
typo = names.trajectory.trajectory_to_row  # expect: attr-defined
text = Agent(name="t").run_sync("go").output.people  # expect: attr-defined
number: int = Agent(name="t", output_type=str).run_sync("go").output  # expect: assignment
texts: list[str] = Agent(name="t", output_type=list[int]).run_sync("go").output  # expect: assignment
