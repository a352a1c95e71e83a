"""The Agent as an AgentModule: each step is a turn."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from ....engine import AgentModule, Decision, Observation, RunFailure, emit
from ....tasks import Task
from ..chat.files import message_of, stored
from ..chat.json_forms import message_from, usage_to_dict
from ..chat.messages import Message
from ..chat.validation import sanitize_orphan_tool_messages
from ..generators.estimate import estimate_tokens
from ..modes.conversation import choose_mode
from ..modes.mode import ToolMode
from ..outputs import OutputDefinitionError
from ..outputs.calls import actions_of, outcome_of_result
from ..outputs.spec import OutputMode
from ..tools import Toolset
from ..tools.results.reported_outcome import read_outcome
from ..tools.run_context import check_deps, opened_deps
from .act import observed
from .compaction import capabilities_of
from .decide import Deciding, is_live
from .per_turn import PerTurn
from .reduce import is_empty, reduce_turn
from .setup import Setup, in_turn_of
from .state import AgentFacts, AgentState
from .turn import Turn


class AgentLoop(AgentModule[AgentState]):
    """The engine module that runs an Agent; made by `agent.module()`.

    Use it as `Engine(agent.module(), ...)`. A task's inputs may hold `history` (messages of earlier turns, as
    documents), `session_id`, `agent_id`, `message_metadata` (for the goal's message), `asked`, the number of
    requests in earlier turns (a scripted generator continues after them), and `kept_before`, the values that tools have
    kept in earlier turns. The other inputs are for the tools.

    `agent.run` enters toolsets that are context managers; the module does not.
    """

    def __new__(cls, setup: Setup) -> "AgentLoop":
        """Make a loop without recording its argument in headers.

        A run's agent is rebuilt from its task and state, not from the constructor's arguments.
        """
        return object.__new__(cls)

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.fork_mode: ToolMode | None = None
        """The tool mode of a fork with another model, if the Agent's is "auto"."""
        self.tools = {name: tool.to_action() for name, tool in setup.by_name.items()}
        if setup.output is not None:
            if shared := self.tools.keys() & setup.output.by_name.keys():
                raise OutputDefinitionError(f"the agent {setup.name!r} has a tool and an output named {min(shared)}.")
            self.tools |= actions_of(setup.output)

    async def init_state(
        self,
        task: str,
        *,
        history: Sequence[Any] = (),
        session_id: str | None = None,
        agent_id: str | None = None,
        message_metadata: Mapping[str, Any] | None = None,
        asked: int | None = None,
        kept_before: Mapping[str, Any] | None = None,
        attachments: Sequence[dict[str, Any]] = (),
        **inputs: Any,
    ) -> AgentState:
        """Return the first state: the conversation so far and the goal."""
        earlier = [m for m in map(message_from, history) if not is_empty(m) and m.role != "system"]
        goal = message_of(task, attachments, message_metadata)
        messages = [*map(stored, sanitize_orphan_tool_messages(earlier)), goal]
        settings = self._settings(agent_id=agent_id, session_id=session_id)
        system = settings["system"]
        return AgentState(
            **settings,
            inputs=inputs,
            kept=dict(kept_before or {}),
            messages=messages,
            turns_before=len(messages) - 1,
            output_mode=(output := await self._output_mode()),
            tool_mode=await self.mode(output),
            asked=sum(m.role == "assistant" for m in earlier) if asked is None else asked,
            weight=estimate_tokens([*messages, system] if system is not None else messages),
        )

    def _settings(self, **ids: str | None) -> dict[str, Any]:
        """Return the fields of the first state that only the Agent determines."""
        setup = self.setup
        policy = setup.policy.describe() if setup.policy is not None else None
        tools = [tool.definition for tool in setup.tools]
        text = setup.instructions if isinstance(setup.instructions, str) else ""
        return {
            "agent": AgentFacts(name=setup.name, model=setup.generator.model, policy=policy, **ids),
            "system": Message("system", text) if text else None,
            "params": setup.params.model_copy(update={"tools": tools}) if tools else setup.params,
            "limit": setup.limit,
            "output_schemas": setup.output.definitions if setup.output is not None else [],
        }

    def configuration(self) -> dict[str, Any]:
        """Return the Agent's settings in the state, which a fork adopts."""
        state = AgentState(**self._settings()).to_dict()
        found = {f"/agent/{name}": state["agent"][name] for name in ("name", "model", "policy")}
        found |= {f"/{name}": state[name] for name in ("params", "limit", "output_schemas")}
        if not isinstance(self.setup.instructions, PerTurn):
            found["/system"] = state["system"]
        if self.setup.output is not None and self.setup.output.mode != "auto":
            found["/output_mode"] = self.setup.output.mode
        mode = self.setup.tool_mode if self.fork_mode is None else self.fork_mode
        return found if mode == "auto" else {**found, "/tool_mode": mode}

    async def _output_mode(self) -> OutputMode | None:
        spec = self.setup.output
        if spec is None or spec.mode != "auto":
            return None if spec is None else spec.choose_mode(None, has_tools=True)
        known = await capabilities_of(self.setup.generator)
        return spec.choose_mode(known.json_schema, has_tools=bool(self.setup.tools))

    async def mode(self, output: OutputMode | None = None) -> ToolMode:
        """Return the tool mode, chosen by the model's capabilities for "auto"."""
        if self.setup.tool_mode != "auto":
            return self.setup.tool_mode
        if not self.setup.tools and output != "tool":
            return "api"
        known = await capabilities_of(self.setup.generator)
        return choose_mode("auto", known.function_calling)

    async def warm_up(self) -> None:
        """Load what the model needs, such as the package that asks it.

        Raises UsageError if a tool needs dependencies and there are none.
        """
        self.setup.check_deps()
        load = getattr(self.setup.generator, "warm_up", None)
        if load is not None:
            await load()

    def lifespan(self) -> AbstractAsyncContextManager[Any] | None:
        """Return what makes the run's dependencies, unless they were passed."""
        setup = self.setup
        if setup.make_deps is None or setup.deps is not None:
            return None
        return opened_deps(setup.make_deps, partial(check_deps, setup.name, setup.signatures()))

    async def decide(self, state: AgentState) -> Decision:
        """Ask the model.

        A failure of the model is raised, so that the step is not committed and a resumed run takes the turn again.
        Verification returns it as a turn, since runs have committed such turns up to version 0.1.
        """
        deciding = Deciding(self.setup, state)
        with in_turn_of(self.setup):
            turn = await deciding.turn()
        if deciding.failure is not None and is_live():
            used = {} if turn.used is None else {"usage": usage_to_dict(turn.used)}
            emit("generation_failed", error=turn.error, requests=turn.requests, **used)
            raise deciding.failure
        return turn.decision()

    async def act(self, state: AgentState, decision: Decision) -> Observation:
        """Run the calls of the model's answer."""
        with in_turn_of(self.setup):
            return await observed(self.setup, self.tools, state, decision)

    def child_module(self, name: str, task: Task) -> AgentModule[Any] | None:
        """Return the module of a background sub-agent from its toolset."""
        owners = {id(owner): owner for tool in self.setup.tools if (owner := getattr(tool.fn, "__self__", None))}
        for owner in owners.values():
            if isinstance(owner, Toolset) and hasattr(owner, "child_module"):
                found: AgentModule[Any] | None = owner.child_module(
                    name, task, self.setup.policy, self.setup.current_deps()
                )
                if found is not None:
                    return found
        return None

    def failure(self, state: AgentState) -> RunFailure | None:
        """Return the error of a tool, or of a hook's Fail."""
        if state.error is None:
            return None
        return RunFailure(state.error.get("type", "Fail"), state.error["message"])

    def recorded_result(self, name: str, result: Any) -> Any:
        """Return the outcome of a call whose result a person reports.

        It is the outcome that the tool itself would have had.
        """
        if self.setup.output is not None and name in self.setup.output.by_name:
            return outcome_of_result(self.setup.output.by_name[name], result).to_dict()
        tool = self.setup.by_name.get(name)
        return result if tool is None else read_outcome(tool, result).to_dict()

    def reduce(self, state: AgentState, decision: Decision, observation: Observation) -> None:
        """Add the turn and its outcomes to the conversation."""
        reduce_turn(state, Turn.of(decision), observation.results, observation.value, self.setup.output)
