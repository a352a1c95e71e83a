"""The state of an Agent's run.

It has the conversation as the model sees it, the parameters of requests, and the usage.
"""

from typing import Any

from ....engine import StateModel, StateSchema
from ..chat.messages import Message
from ..chat.usage import Usage
from ..generators.params import GenerateParams
from ..modes import ToolMode


class AgentFacts(StateModel):
    """Who runs: what events say of the agent. The ids are None where a module was run without its Agent.

    `policy` is what stands over its calls, with its settings: a run that was begun under one is not resumed under
    another, unless whoever resumes it says so (`on_divergence="ignore"`).
    """

    name: str
    model: str
    agent_id: str | None = None
    session_id: str | None = None
    policy: dict[str, Any] | None = None


class AgentState(StateSchema):
    """The state of one run of an Agent. Only `reduce` writes it.

    Attributes:
        agent: who runs.
        inputs: the task's inputs, but for those of the Agent's own.
        system: the instructions.
        messages: what the model is sent from here on; after a compaction a summary and the messages behind it.
        turns_before: how many of the first messages are those of earlier turns.
        params: how the model is asked; the tools are in it in every mode.
        tool_mode: how it is told of them; never "auto".
        limit: the Agent's `max_steps`; `max_steps` is what the budget allows.
        asked: how many requests were made, those that failed included.
        weight: about how many tokens the conversation has.
        usage: all that the run has used.
        memory: what counting hooks remember, by their place and name.
        kept: what tools keep from one call to the next, such as what is in Memory; see `tools.kept`.
        error: why it failed, by class and text.
    """

    agent: AgentFacts
    inputs: dict[str, Any] = {}
    system: Message | None = None
    messages: list[Message] = []
    turns_before: int = 0
    params: GenerateParams = GenerateParams()
    tool_mode: ToolMode = "api"
    limit: int = 1000
    asked: int = 0
    weight: int = 0
    usage: Usage = Usage()
    memory: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    error: dict[str, Any] | None = None
