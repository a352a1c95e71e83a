"""What a text mode is: a way to tell a model of tools, and to write and read calls, in nothing but text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ..chat.tool_calls import ToolCall, ToolDefinition

ToolMode = Literal["auto", "api", "xml", "json", "json-in-xml", "json-with-tag", "pythonic"]
"""How a model is told of tools and how its calls are read.

`api` leaves both to the provider's function calling, and `auto` takes it where there is one, else `json-in-xml`. The
others are text: `xml` nests an element for each argument, `json` is a bare object with name and arguments,
`json-in-xml` is an element that names the tool around an object of arguments, `json-with-tag` is the object of `json`
inside an element, and `pythonic` is a list of function calls.
"""


@dataclass(frozen=True)
class FoundCall:
    """A call that was read in a text: the tool's name, its arguments as JSON text, and the id, if the model gave one.

    Arguments that are no JSON object stand as the model wrote them; the tool says what is wrong with them.
    """

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True)
class Problem:
    """Something that was meant as a call and is none: what is wrong with it, and the text itself."""

    what: str
    raw: str


@dataclass(frozen=True)
class Reading:
    """What a text holds: the text without its calls, the calls, and what was meant to be one."""

    text: str
    calls: tuple[FoundCall, ...] = ()
    problems: tuple[Problem, ...] = ()


class TextMode(Protocol):
    """One way to write calls as text. All of it is pure: the same text is always read the same way."""

    stop: tuple[str, ...]
    """Where the model is to stop writing."""

    def describe(self, tools: Sequence[ToolDefinition]) -> str:
        """Return what the model is told.

        That is which tools there are, and how a call is written.
        """

    def write(self, calls: Sequence[ToolCall]) -> str:
        """Return calls as text.

        `read` returns them with the same names and arguments.
        """

    def read(self, text: str, tools: Sequence[ToolDefinition] = ()) -> Reading:
        """Return the calls in a text.

        `tools` help if the text alone does not say what is meant.
        """
