"""Text modes: calls of tools, written and read as plain text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ..chat.tool_calls import ToolCall, ToolDefinition

ToolMode = Literal["auto", "api", "xml", "json", "json-in-xml", "json-with-tag", "pythonic"]
"""How a model sees tools and how refold reads its calls.

`api` is the provider's function calling. `auto` stands for `api` if the provider has function calling, otherwise for
`json-in-xml`. The others are text: `xml` nests an element for each argument, `json` is a bare object with name and
arguments, `json-in-xml` is an element that names the tool around an object of arguments, `json-with-tag` is the object
of `json` inside an element, and `pythonic` is a list of function calls.
"""


@dataclass(frozen=True)
class FoundCall:
    """A call read from a text; the arguments are JSON text.

    The id is None unless the model wrote one. Arguments other than a JSON object are kept as the model wrote them; the
    tool reports what is wrong with them.
    """

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True)
class Problem:
    """An unreadable call: what is wrong with it, and its text."""

    what: str
    raw: str


@dataclass(frozen=True)
class Reading:
    """A text split into calls, unreadable calls and the rest."""

    text: str
    calls: tuple[FoundCall, ...] = ()
    problems: tuple[Problem, ...] = ()


class TextMode(Protocol):
    """A way to write calls as text.

    All methods are pure.
    """

    stop: tuple[str, ...]
    """Texts at which the model must stop writing."""

    def describe(self, tools: Sequence[ToolDefinition]) -> str:
        """Return the prompt's section on tools and on writing calls."""

    def write(self, calls: Sequence[ToolCall]) -> str:
        """Return calls as text.

        `read` returns calls with the same names and arguments.
        """

    def read(self, text: str, tools: Sequence[ToolDefinition] = ()) -> Reading:
        """Return the calls in a text.

        The schemas of `tools` resolve ambiguities in the text.
        """
