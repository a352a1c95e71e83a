"""A policy's answers to a call: denial, or a person's approval."""

import json
from typing import Any

from ..agent.chat.tool_calls import ToolCall
from ..agent.events import ToolStart
from ..agent.reactions import Reaction, RetryWithFeedback
from ..tools.human.ask_tools import is_approved
from .people import with_people


def denied(event: ToolStart, why: str, **told: Any) -> Reaction:
    """Deny the call and record the denial; the model reads the reason."""
    event.policy_decision = {"kind": "deny", "reason": why, **told}
    return RetryWithFeedback(why, tool_call_id=event.tool_call.id)


async def asked(
    event: ToolStart, why: str, *, session: str | None = None, somebody: bool = True, **told: Any
) -> Reaction | None:
    """Ask a person about the call, and deny the call without approval.

    If nobody can answer, the call is denied. An approval is valid only for this call with these arguments. An approval
    "for the session" (`session`, otherwise the run) is valid for every call with the same name and arguments as long as
    this process runs. Another process asks again.
    """
    if (why_not := said_twice(event.tool_call)) is not None:
        return denied(event, why_not, **told)
    if not somebody:
        return denied(event, f"operator approval required, and no person can give it: {why}", **told)
    with with_people():
        if not await is_approved(event.tool_call, why, session=session):
            return denied(event, f"a person did not allow it: {why}", human_approved=False, **told)
    event.policy_decision = {"kind": "allow", "reason": why, "human_approved": True, **told}
    return None


def said_twice(call: ToolCall) -> str | None:
    """Return why a call that repeats an argument's name cannot be approved.

    Returns None if no name is repeated. The tool uses the last value, but the person may have read another value.
    """
    twice: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice.extend(name for name in names if names.count(name) > 1)
        return dict(pairs)

    text: Any = call.arguments
    for _ in range(2):  # an object may be written as JSON inside a JSON string
        if isinstance(text, str):
            try:
                text = json.loads(text, strict=False, object_pairs_hook=note)
            except (ValueError, RecursionError):
                break
    return f"{twice[0]!r} occurs twice in the arguments; write it once" if twice else None
