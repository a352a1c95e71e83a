"""Tags, references and CDATA in a text that need not be XML."""

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
    """Return a pattern for tags whose names match the pattern `name`."""
    return re.compile(rf"<(?P<slash>/?)(?P<name>{name})(?P<attributes>(?:\s+{_ATTRIBUTE})*)\s*(?P<empty>/?)>")


ANY_TAG = tag_pattern(r"[A-Za-z_][\w.:-]*")


def tag_of(match: re.Match[str]) -> Tag:
    """Return the tag of a match of `tag_pattern`."""
    written = match["attributes"]
    is_empty = bool(match["empty"])
    if written.endswith("/") and not is_empty:  # the pattern of an unquoted value includes the slash
        written, is_empty = written[:-1], True
    attributes = {}
    for name, *values in _ATTRIBUTES.findall(written):
        attributes[name] = unescape("".join(values))
    return Tag(match["name"], match.start(), match.end(), bool(match["slash"]), is_empty, attributes)


def tags(text: str, pattern: re.Pattern[str], start: int = 0) -> Iterator[Tag]:
    """Yield the tags of a text outside CDATA sections and comments."""
    for match in _or_skipped(pattern).finditer(text, start):
        if match["name"] is not None:
            yield tag_of(match)


@cache
def _or_skipped(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Return one pattern for tags, CDATA sections and comments.

    With one pattern, the text is read in one pass.
    """
    return re.compile(rf"(?s:<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z))|{pattern.pattern}")


def escape(text: str) -> str:
    """Return the text with markup escaped; `unescape` is the inverse.

    Characters that XML does not allow become numeric references.
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", _numbered, text)


def escape_attribute(text: str) -> str:
    """Return the text as an attribute's value for double quotes."""
    escaped = re.sub(r"[\t\n]", _numbered, escape(text).replace('"', "&quot;"))
    return f'"{escaped}"'


def numbered_breaks(text: str) -> str:
    """Return the text with outer line breaks as numeric references.

    Otherwise a reader takes them for layout.
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
    """Return the text with character references replaced.

    Other ampersands do not change.
    """

    def character(match: re.Match[str]) -> str:
        if match[3]:
            return _NAMED[match[3]]
        number = int(match[1], 16) if match[1] else int(match[2])
        return chr(number) if number < 0x110000 else match[0]

    return _REFERENCE.sub(character, text) if "&" in text else text


def plain_text(body: str) -> str:
    """Return the text between two tags.

    CDATA is taken literally; elsewhere character references are replaced. A line break right after the first tag or
    right before the last tag is layout and is removed.
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
