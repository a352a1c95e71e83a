"""A turn's effect on the state: messages, usage and ending. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....engine import ActionResult, StopReason
from ..chat.json_forms import usage_from
from ..chat.messages import Message
from ..chat.validation import sanitize_orphan_tool_messages
from ..generators.estimate import estimate_tokens
from ..generators.recorded_error import error_to_dict, recorded_error
from ..modes.conversation import feedback_on
from ..reactions import Continue, Fail, Finish, Retry, RetryWithFeedback
from ..tools import ToolOutcome
from ..tools.tool_state import fold_kept
from .dispatch import OTHER, Reacted
from .state import AgentState
from .turn import Turn

Value = Mapping[str, Any]
"""The value of `act`'s observation: reactions, memory, a tool's error, the stop conditions' verdict."""


@dataclass(slots=True)
class Consequences:
    """A turn's winning reactions with their messages, and its ending, if any."""

    reactions: list[tuple[Reacted, list[Message]]] = field(default_factory=list)
    """At most one for each event; lost reactions are omitted."""
    replaced: list[Message] | None = None
    """The whole new conversation with its system message, if a Retry has one."""
    stop: StopReason | None = None
    final: str | None = None
    error: dict[str, Any] | None = None

    @property
    def added(self) -> list[Message]:
        """The messages that reactions add."""
        return [message for _, messages in self.reactions for message in messages]

    def next_chat(self) -> list[Message]:
        """Return the Retry's conversation and the messages that reactions add."""
        chat: list[Message] = []
        for reacted, added in self.reactions:
            if isinstance(reacted.reaction, Retry) and reacted.reaction.messages is not None:
                chat = [m for m in sanitize_orphan_tool_messages(reacted.reaction.messages) if m.role != "system"]
            else:
                chat += added
        return chat


def turn_messages(turn: Turn, answers: Sequence[Message], mode: Any, tools: Sequence[Any]) -> list[Message]:
    """Return the turn's own messages.

    These are the model's message, the results of its calls in order, and feedback on unreadable calls.
    """
    found: list[Message] = []
    message = turn.message
    if message is not None and not is_empty(message):
        found.append(message)
    found += answers
    if turn.problems:
        found.append(feedback_on(mode, turn.problems, tools))
    return found


def is_empty(message: Message) -> bool:
    """Return whether an assistant message is empty, which some providers refuse."""
    return message.role == "assistant" and not message.body and not message.tool_calls and not message.metadata


def consequences(
    turn: Turn, outcomes: Sequence[ToolOutcome], value: Value | None, chat: Callable[[], Sequence[Message]]
) -> Consequences:
    """Return the consequences of a turn.

    `chat` returns the conversation, including the turn's own messages.
    """
    found = Consequences()
    if not turn.reactions and not value:
        _without_reaction(found, turn, outcomes, {})
        return found
    value = value or {}
    said = [Reacted.from_dict(doc) for doc in (*turn.reactions, *value.get("reactions", ())) if not doc.get("lost")]
    counted = [reacted for reacted in said if reacted.reaction.precedence < OTHER]
    strongest = min(counted, key=lambda reacted: reacted.reaction.precedence, default=None)
    for reacted in said:
        found.reactions.append((reacted, _added(reacted, chat, found)))
    if strongest is not None and not strongest.reaction.stop:
        return found
    if strongest is not None and isinstance(strongest.reaction, Finish):
        found.stop, found.final = StopReason.agent_condition, turn.text or strongest.reaction.reason
    elif strongest is not None and isinstance(strongest.reaction, Fail):
        error = strongest.reaction.error
        found.stop = StopReason.unrecoverable_error
        found.error = error_to_dict(error) if isinstance(error, Exception) else {"message": error}
    else:
        _without_reaction(found, turn, outcomes, value)
    return found


def _without_reaction(found: Consequences, turn: Turn, outcomes: Sequence[ToolOutcome], value: Value) -> None:
    error = turn.error or value.get("error")
    if error is not None:
        found.stop = StopReason.context_overflow if error.get("overflow") else StopReason.unrecoverable_error
        found.error = {name: item for name, item in error.items() if name != "overflow"}
        return
    stopping = None
    for outcome in outcomes:
        if outcome.stop:
            stopping = outcome
            break
    if stopping is not None or value.get("stopped"):
        found.stop = StopReason.agent_condition
        found.final = turn.text or (stopping.text if stopping is not None else None)
    elif turn.kind == "answer" and not turn.problems:
        found.stop = StopReason.stagnation if value.get("stalled") else StopReason.final
        found.final = turn.text


def _added(reacted: Reacted, chat: Callable[[], Sequence[Message]], found: Consequences) -> list[Message]:
    """Return the messages that a reaction adds, even if the run ends."""
    reaction = reacted.reaction
    if isinstance(reaction, Continue):
        return reaction.to_add()
    if isinstance(reaction, RetryWithFeedback):
        if reaction.tool_call_id is None:
            return reaction.to_add()
        if reacted.event == "ToolStart" and reaction.tool_call_id == reacted.call:
            return []  # the reaction's text is already the call's result
        (denial,) = reaction.to_add()
        return [Message("user", denial.content, metadata=denial.metadata)]
    if isinstance(reaction, Retry) and reaction.messages is not None:
        found.replaced = sanitize_orphan_tool_messages(reaction.messages)
        known = {message.model_dump_json() for message in chat()}
        return [m for m in found.replaced if m.role != "system" and m.model_dump_json() not in known]
    return []


def reduce_turn(state: AgentState, turn: Turn, results: Sequence[ActionResult], value: Value | None) -> None:
    """Write a turn and its outcomes into a draft of the state."""
    if turn.compaction is not None:
        del state.messages[: turn.compaction.cut]
        state.messages.insert(0, turn.compaction.summary)
        state.turns_before = 0
        state.weight = estimate_tokens(state.messages)
    if turn.mode is not None:
        state.tool_mode = turn.mode
    outcomes: list[ToolOutcome] = []
    answers: list[Message] = []
    for result in results:
        outcome = ToolOutcome.of_result(result)
        outcomes.append(outcome)
        answers.append(outcome.message(result.id))
    tools = state.params.tools if turn.problems else None  # reading from a draft makes drafts, so read only if needed
    new = turn_messages(turn, answers, state.tool_mode, tools or ())
    found = consequences(turn, outcomes, value, lambda: [*state.messages, *new])
    if found.replaced is not None:
        systems = [m for m in found.replaced if m.role == "system"]
        state.system = systems[0] if systems else None
        state.messages = found.next_chat()
        state.weight = estimate_tokens(state.messages)
    else:
        if found.reactions:
            new += found.added
        state.messages += new
        state.weight = _weight(state, turn, new)
    state.asked += turn.requests
    if (used := turn.used) is not None:
        state.usage.count(used)
    for outcome in outcomes:
        if outcome.metadata and (used := outcome.usage) is not None:
            state.usage.count(used)
    if value and value.get("used"):
        state.usage.count(usage_from(value["used"]))
    for outcome in outcomes:
        if outcome.signal is not None:
            fold_kept(state.kept, outcome)
    memory = {**turn.memory, **((value or {}).get("memory") or {})}
    if memory:
        state.memory.update(memory)
    if found.error is not None:
        state.error = found.error
    if found.stop is not None:
        state.set_stop(found.stop, found.final or None)
    elif state.current_step + 1 == state.limit:  # beyond it, the run was resumed under a larger budget
        state.set_stop(StopReason.max_steps)


def _weight(state: AgentState, turn: Turn, new: Sequence[Message]) -> int:
    """Return the approximate number of tokens in the conversation.

    This is the provider's count, if there is one, plus an estimate for later messages.
    """
    usage = turn.usage
    if usage is None or turn.requests != 1 or turn.message is None or turn.compaction is not None:
        return state.weight + estimate_tokens(new)
    answered = 0 if is_empty(turn.message) else 1
    return usage.total_tokens + estimate_tokens(new[answered:])


def error_of(document: Mapping[str, Any]) -> Exception | str:
    """Return the error in a state, or its text, for events."""
    if "type" not in document:
        return str(document.get("message", ""))
    return recorded_error(document["type"], document.get("message", ""), document.get("cause"))
