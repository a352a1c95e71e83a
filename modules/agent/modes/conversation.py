"""Conversations and answers in a tool mode.

`prompt_for` writes a conversation for a model. `read_answer` returns the model's answer as a message with calls.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from ..chat.content import Content, ContentText
from ..chat.messages import Message
from ..chat.tool_calls import ToolCall, ToolDefinition
from .json_mode import JsonMode
from .markup import escape_attribute
from .mode import Problem, Reading, TextMode, ToolMode
from .pythonic import PythonicMode
from .tagged import JsonInXmlMode, JsonWithTagMode
from .xml_mode import XmlMode, with_end

TEXT_MODES: dict[ToolMode, TextMode] = {
    "xml": XmlMode(),
    "json": JsonMode(),
    "json-in-xml": JsonInXmlMode(),
    "json-with-tag": JsonWithTagMode(),
    "pythonic": PythonicMode(),
}
_RAW_SHOWN = 200
_CLOSING = "</tool-response"


@dataclass(frozen=True)
class Prompt:
    """A request's messages, its native tools and its stop texts."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A model's answer: a message with `tool_calls`, and unreadable calls."""

    message: Message
    problems: tuple[Problem, ...] = ()


def prompt_for(mode: ToolMode, messages: Iterable[Message], tools: Sequence[ToolDefinition]) -> Prompt:
    """Return a conversation in the form of `mode`.

    The given messages do not change. In `api` mode, the prompt is the conversation and the tools. A text mode appends a
    section on the tools to the system message (adding one if needed) and writes earlier calls into their messages'
    text. The user sends the results of tools: each in a `<tool-response>`, all results of one answer in one message.

    Raises ValueError for `auto`, which must be resolved first; see `choose_mode`.
    """
    if mode == "api":
        return Prompt(tuple(messages), tuple(tools))
    text_mode = _text_mode(mode)
    told: list[Message] = []
    responses: list[Message] = []
    for message in messages:
        if message.role == "tool":
            responses.append(message)
            continue
        if responses:
            told.append(_told_results(responses))
            responses = []
        told.append(_told_calls(message, text_mode) if message.tool_calls else message)
    if responses:
        told.append(_told_results(responses))
    if tools:
        told = _with_section(told, f"# Tools\n\n{text_mode.describe(tools)}")
    return Prompt(tuple(told), stop=text_mode.stop if tools else ())


def read_answer(
    mode: ToolMode,
    message: Message,
    tools: Sequence[ToolDefinition] = (),
    *,
    seed: str = "",
    is_complete: bool = True,
) -> Answer:
    """Return a model's answer with the calls in its text.

    In `api` mode, or if the message already has calls, the message does not change. `seed` distinguishes this answer
    from others, such as by the number of its step. If the model wrote no id for a call, the id is `rg-` and eight hex
    digits of a hash of the seed and the answer. `is_complete` is False for an answer that was cut off at a token limit.
    """
    if mode == "api" or message.tool_calls:
        return Answer(message)
    text = with_end(message.content) if mode == "xml" and is_complete else message.content
    reading = _text_mode(mode).read(text, tools)
    if not reading.calls:
        return Answer(message, reading.problems)
    body: str | list[str | Content] = reading.text
    others = [part for part in message.content_parts if not isinstance(part, ContentText)]
    if others:
        body = [*([reading.text] if reading.text else []), *others]
    return Answer(
        Message(message.role, body, tool_calls=_identified(reading, message, seed), metadata=message.metadata),
        reading.problems,
    )


def feedback_on(mode: ToolMode, problems: Sequence[Problem], tools: Sequence[ToolDefinition] = ()) -> Message:
    """Return the feedback for calls that could not be read.

    The feedback names each problem and shows how to write a call.
    """
    several = len(problems) > 1
    lines = ["Calls of tools in your answer could not be read:" if several else "A call could not be read:"]
    for problem in problems:
        raw = " ".join(problem.raw.split())
        shown = raw if len(raw) <= _RAW_SHOWN else f"{raw[: _RAW_SHOWN - 3]}..."
        lines.append(f"- {problem.what}\n  in: {shown}")
    name = tools[0].function.name if tools else "tool_name"
    example = _text_mode(mode).write([ToolCall.of("", name, {"parameter": "value"})])
    names = ", ".join(tool.function.name for tool in tools)
    lines.append(f"A call is written like this:\n{example}")
    if names:
        lines.append(f"The tools are: {names}.")
    return Message("user", "\n".join(lines))


def _text_mode(mode: ToolMode) -> TextMode:
    found = TEXT_MODES.get(mode)
    if found is None:
        raise ValueError(
            f"{mode!r} is not a text mode: expected {', '.join(TEXT_MODES)}; resolve auto with choose_mode"
        )
    return found


def _told_calls(message: Message, mode: TextMode) -> Message:
    """Return a message with its calls written into its text."""
    written = mode.write(message.tool_calls or ())
    if isinstance(message.body, str):
        body: str | list[str | Content] = "\n".join(filter(None, [message.body, written]))
    else:
        body = [*message.body, written]
    return Message(message.role, body, metadata=message.metadata)


def _told_results(results: Sequence[Message]) -> Message:
    """Return results of tools as one user message."""
    parts: list[str | Content] = []
    for result in results:
        id_ = f" id={escape_attribute(result.tool_call_id)}" if result.tool_call_id else ""
        parts.append(f"<tool-response{id_}>")
        parts += [_harmless(part) for part in result.content_parts]
        parts.append("</tool-response>\n")
    return Message("user", _joined(parts))


def _harmless(part: Content) -> Content:
    """Return a part with tags of tool responses escaped."""
    if not isinstance(part, ContentText):
        return part
    text = part.text.replace(_CLOSING, "&lt;/tool-response").replace("<tool-response", "&lt;tool-response")
    return ContentText(text=text)


def _joined(parts: Sequence[str | Content]) -> str | list[str | Content]:
    """Return the parts with adjacent texts joined, or the only text."""
    joined: list[str | Content] = []
    for part in parts:
        text = part if isinstance(part, str) else part.text if isinstance(part, ContentText) else None
        if text is None:
            assert not isinstance(part, str)
            joined.append(part)
        elif joined and isinstance(joined[-1], str):
            joined[-1] += text
        else:
            joined.append(text)
    if len(joined) == 1 and isinstance(joined[0], str):
        return joined[0].strip("\n")
    return joined


def _with_section(messages: list[Message], section: str) -> list[Message]:
    """Return the messages with the section appended to the system message."""
    if not messages or messages[0].role != "system":
        return [Message("system", section), *messages]
    system = messages[0]
    if isinstance(system.body, str):
        body: str | list[str | Content] = "\n\n".join(filter(None, [system.body, section]))
    else:
        body = [*system.body, section]
    return [system.with_content(body), *messages[1:]]


def _identified(reading: Reading, message: Message, seed: str) -> list[ToolCall]:
    """Return the calls, each with an id unique in the answer."""
    taken: set[str] = set()
    calls: list[ToolCall] = []
    for place, call in enumerate(reading.calls):
        id_ = call.id
        salt = 0
        while not id_ or id_ in taken:
            what = f"{seed}|{place}|{salt}|{message.content}"
            id_ = f"rg-{blake2b(what.encode(), digest_size=4).hexdigest()}"
            salt += 1
        taken.add(id_)
        calls.append(ToolCall.of(id_, call.name, call.arguments))
    return calls
