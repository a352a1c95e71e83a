"""The defects of a chat for which an API would refuse it."""

from collections.abc import Sequence

from refold.modules.agent import Message


def chat_problems(messages: Sequence[Message]) -> list[str]:
    """Return the defects for which an API would refuse the messages.

    Defects are calls without a result, results without a call, and blank or repeated ids and names. Each text names the
    message by its index from 0. A list that ends in an assistant's calls is not yet a chat.
    """
    found: list[str] = []
    pending: dict[str, int] = {}
    for i, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id is None or message.tool_call_id not in pending:
                found.append(f"message {i} is the result of call {message.tool_call_id!r}, which is not open there")
            else:
                del pending[message.tool_call_id]
            continue
        found += _left_open(pending)
        pending = {}
        if message.tool_call_id is not None:
            found.append(f"message {i} has a tool_call_id, but its role is {message.role}")
        if message.tool_calls is not None and message.role != "assistant":
            found.append(f"message {i} makes tool calls, but its role is {message.role}")
        if message.tool_calls is not None and not message.tool_calls:
            found.append(f"message {i} has an empty list of tool calls")
        for call in message.tool_calls or ():
            if not call.id or call.id in pending:
                found.append(f"message {i} has a call whose id {call.id!r} is blank or repeated")
            if not call.name.strip():
                found.append(f"message {i} has a call without a name")
            pending[call.id] = i
    return found + _left_open(pending)


def _left_open(pending: dict[str, int]) -> list[str]:
    return [f"call {id_!r} of message {i} has no result" for id_, i in pending.items()]
