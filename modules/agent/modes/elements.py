"""Elements in a text that need not be XML.

An element holds either elements or text.
"""

import re
from dataclasses import dataclass, field

from ..chat.readable_schema import TYPES
from .markup import ANY_TAG, Tag, tags

ITEM, ENTRY = "item", "entry"
"""The elements for list items, and for members whose names cannot be element names."""

_COMMENT = re.compile(r"<!--.*?(?:-->|(?P<open>\Z))", re.DOTALL)
"""A comment, or an open comment with the rest of the text.

Matching the rest at once avoids another search to the text's end for each further `<!--`.
"""


@dataclass
class Element:
    """An element: its tag, its body, and its child elements.

    `has_text` is true if the body has text beside elements; the whole body is then text.
    """

    tag: Tag
    source: str
    start: int
    end: int
    children: "list[Element]" = field(default_factory=list)
    has_text: bool = False

    @property
    def body(self) -> str:
        """The text between the element's tags."""
        return self.source[self.start : self.end]

    @property
    def elements(self) -> "list[Element]":
        """The child elements; empty if the element has text."""
        return [] if self.has_text else self.children

    @property
    def key(self) -> str:
        """The name of the argument or member, or an entry's `key`."""
        if self.tag.name == ENTRY and "key" in self.tag.attributes:
            return self.tag.attributes["key"]
        return self.tag.name

    @property
    def type(self) -> str | None:
        """The JSON type in the element's `type` attribute, or None."""
        said = self.tag.attributes.get("type")
        return said if said in TYPES else None

    @property
    def members(self) -> dict[str, str]:
        """The attributes, without the type and an entry's key."""
        skipped = {"type"} if self.type else set()
        skipped |= {"key"} if self.tag.name == ENTRY else set()
        return {name: value for name, value in self.tag.attributes.items() if name not in skipped}


def element_of(tag: Tag, body: str) -> Element:
    """Return the element of a tag with this body.

    One pass reads all elements in the body. An unpaired opening or closing tag is text.
    """
    root = Element(tag, body, 0, len(body))
    open_, opened = [root], dict[str, int]()
    at = 0
    for found in tags(body, ANY_TAG):
        _note_text(open_[-1], body[at : found.start])
        at = found.end
        if found.is_empty:
            open_[-1].children.append(Element(found, body, found.end, found.end))
        elif not found.closes:
            open_.append(Element(found, body, found.end, len(body)))
            opened[found.name] = opened.get(found.name, 0) + 1
        elif not opened.get(found.name):
            open_[-1].has_text = True
        else:
            closed = open_.pop()
            while closed.tag.name != found.name:
                opened[closed.tag.name] -= 1
                open_[-1].has_text = True
                closed = open_.pop()
            opened[found.name] -= 1
            closed.end = found.start
            open_[-1].children.append(closed)
    _note_text(open_[-1], body[at:])
    root.has_text |= len(open_) > 1
    return root


def _note_text(element: Element, text: str) -> None:
    if not element.has_text and _COMMENT.sub(_open_comment, text).strip():
        element.has_text = True


def _open_comment(match: re.Match[str]) -> str:
    return "" if match["open"] is None else match[0]
