"""Markup as models write it: tags with attributes, character references, and elements within text that is no XML."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

_ATTRIBUTE = r"""[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>=]+)"""
_ATTRIBUTES = re.compile(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>=]+?)(?=/?$|\s))""")
_REFERENCE = re.compile(r"&(?:#[xX]([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_CDATA = "<![CDATA["
_CDATA_END = "]]>"


@dataclass(frozen=True)
class Tag:
    """A tag in a text, from `start` to `end`."""

    name: str
    start: int
    end: int
    closes: bool = False
    is_empty: bool = False
    attributes: dict[str, str] = field(default_factory=dict)


def tag_pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of tags, opening and closing.

    `name` is the pattern of their names.
    """
    return re.compile(rf"<(?P<slash>/?)(?P<name>{name})(?P<attributes>(?:\s+{_ATTRIBUTE})*)\s*(?P<empty>/?)>")


ANY_TAG = tag_pattern(r"[A-Za-z_][\w.:-]*")


def tag_of(match: re.Match[str]) -> Tag:
    """Return the tag that a pattern has found."""
    written = match["attributes"]
    is_empty = bool(match["empty"])
    if written.endswith("/") and not is_empty:  # an unquoted value takes the slash with it
        written, is_empty = written[:-1], True
    attributes = {}
    for name, *values in _ATTRIBUTES.findall(written):
        attributes[name] = unescape("".join(values))
    return Tag(match["name"], match.start(), match.end(), bool(match["slash"]), is_empty, attributes)


def tags(text: str, pattern: re.Pattern[str], start: int = 0) -> Iterator[Tag]:
    """Return the tags of a text, but for those in CDATA sections and comments."""
    for match in _or_skipped(pattern).finditer(text, start):
        if match["name"] is not None:
            yield tag_of(match)


@cache
def _or_skipped(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Return the pattern of tags and of what hides them.

    Each is found once, so that a text is read once.
    """
    return re.compile(rf"(?s:<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z))|{pattern.pattern}")


def escape(text: str) -> str:
    """Text that `unescape` gives back, and that no reader takes for markup; what no XML can hold, by its number."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", _numbered, text)


def escape_attribute(text: str) -> str:
    """Text for an attribute, in double quotes."""
    escaped = re.sub(r"[\t\n]", _numbered, escape(text).replace('"', "&quot;"))
    return f'"{escaped}"'


def numbered_breaks(text: str) -> str:
    """Return the text, with line breaks at its ends as numbers.

    So these are not taken for layout.
    """
    inner = text.strip()
    if not inner:
        return text.replace("\n", "&#10;")
    start = text.index(inner)
    head, tail = text[:start], text[start + len(inner) :]
    return head.replace("\n", "&#10;") + inner + tail.replace("\n", "&#10;")


def _numbered(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"


def unescape(text: str) -> str:
    """Text whose character references are replaced; an ampersand that begins none stays one."""

    def character(match: re.Match[str]) -> str:
        if match[3]:
            return _NAMED[match[3]]
        number = int(match[1], 16) if match[1] else int(match[2])
        return chr(number) if number < 0x110000 else match[0]

    return _REFERENCE.sub(character, text) if "&" in text else text


def plain_text(body: str) -> str:
    """Return what is written between two tags.

    CDATA stays as it is; elsewhere character references are replaced.

    A line break right after the first tag, and one before the last, are layout.
    """
    body = re.sub(r"\A[ \t]*\r?\n|\r?\n[ \t]*\Z", "", body)
    pieces, at = [], 0
    while (start := body.find(_CDATA, at)) >= 0:
        end = body.find(_CDATA_END, start)
        if end < 0:
            break
        before = body[at:start]
        pieces += [unescape(before) if before.strip() else "", body[start + len(_CDATA) : end]]
        at = end + len(_CDATA_END)
    rest = body[at:]
    return "".join([*pieces, unescape(rest) if rest.strip() or not pieces else ""])
