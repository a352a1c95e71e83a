"""Finds an edit's place in a text by ever looser matches.

| rung | matches | the new text |
|---|---|---|
| exact | the same characters, line ends aside | as given |
| trailing blanks | lines that are equal but for blanks at their ends | as given |
| indentation | lines that are equal but for their indentation, which is shifted alike everywhere | shifted likewise |
| inner blanks | lines equal when each run of blanks is one | shifted likewise |
| look-alikes | lines equal when typographic quotes, dashes and blanks are plain ones | shifted likewise |
| escapes | the same characters once `\\n`, `\\t`, `\\"` and the like are undone | undone likewise |
| anchors | as many lines, of which the first and the last are equal and those between nearly so | shifted likewise |

The first rung that matches anywhere decides. If it matches in two places, the edit is refused: no looser rung is tried,
and no place is guessed. On the rungs that compare lines, lines that the edit does not change stay as the file has them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

NEARLY = 0.85
"""The least similarity of the lines between two anchors, by difflib's ratio."""

_LEAST_ANCHORED = 4
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
        "\u2026": "...",
    }
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "`": "`", "\\": "\\", "$": "$", "\n": "\n"}


@dataclass(frozen=True)
class Place:
    """The place of an edit: `text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Found:
    """The name of a rung, and all its places, overlapping ones included."""

    rung: str
    places: tuple[Place, ...]

    @property
    def apart(self) -> tuple[Place, ...]:
        """The places in order, without any that overlap an earlier one."""
        kept: list[Place] = []
        for place in self.places:
            if not kept or place.start >= kept[-1].end:
                kept.append(place)
        return tuple(kept)


def find(text: str, old: str, new: str) -> Found | None:
    """Return the places of `old` on the first rung that matches.

    The line ends of all three texts are LF.
    """
    places = tuple(_exact(text, old, new))
    if places:
        return Found("exact", places)
    if not old.strip():
        return None
    lines = _Lines(text)
    for rung, key, shifts in _RUNGS:
        places = tuple(_by_lines(lines, old, new, key, shifts))
        if places:
            return Found(rung, places)
    undone = _undone(old)
    if undone != old and undone.strip():
        places = tuple(_exact(text, undone, _undone(new)))
        if places:
            return Found("escapes", places)
    places = tuple(_anchored(lines, old, new))
    return Found("anchors", places) if places else None


def windows(lines: Sequence[str], wanted: Sequence[str], key: Callable[[str], str]) -> Iterator[int]:
    """Yield the positions of `wanted` in `lines`, compared by `key`."""
    keys = [key(line) for line in wanted]
    own = [key(line) for line in lines]
    for at in range(len(own) - len(keys) + 1):
        if own[at : at + len(keys)] == keys:
            yield at


def _exact(text: str, old: str, new: str) -> Iterator[Place]:
    at = text.find(old)
    while at >= 0:
        yield Place(at, at + len(old), new)
        at = text.find(old, at + 1)


class _Lines:
    """A text as lines without ends, and each line's start."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)


def _same(line: str) -> str:
    return line


def squeezed(line: str) -> str:
    """Return the line stripped, with each inner run of blanks as one."""
    return " ".join(line.split())


def look_alike(line: str) -> str:
    """Return the squeezed line with plain quotes, dashes and blanks."""
    return squeezed(line.translate(_PLAIN))


_RUNGS: tuple[tuple[str, Callable[[str], str], bool], ...] = (
    ("trailing blanks", str.rstrip, False),
    ("indentation", str.strip, True),
    ("inner blanks", squeezed, True),
    ("look-alikes", look_alike, True),
)


def _by_lines(lines: _Lines, old: str, new: str, key: Callable[[str], str], shifts: bool) -> Iterator[Place]:
    """Yield the places whose lines equal those of `old`.

    With `shifts`, places with an unclear indentation are left out.
    """
    wanted = old.split("\n")
    whole = len(wanted) > 1 and wanted[-1] == ""  # the text ends with a line end
    body = wanted[:-1] if whole else wanted
    for at in windows(lines.lines, body, key):
        place = _place(lines, at, body, new, whole, key, shifts)
        if place is not None:
            yield place


def _place(
    lines: _Lines, at: int, body: Sequence[str], new: str, whole: bool, key: Callable[[str], str], shifts: bool
) -> Place | None:
    found = lines.lines[at : at + len(body)]
    fresh = new.split("\n")
    closes = whole and len(fresh) > 1 and fresh[-1] == ""
    fresh = fresh[:-1] if closes else fresh
    merged = _merged(body, found, fresh, key, _shift(body, found) if shifts else _same)
    if merged is None:
        return None
    start, end = lines.starts[at], lines.starts[at + len(body)]
    at_end = end > len(lines.text)
    end = min(end, len(lines.text))
    text = "\n".join(merged)
    if not whole:
        return Place(start, end if at_end else end - 1, text)
    if closes and not at_end:
        return Place(start, end, text + "\n")
    return Place(start, end, "" if new == "" else text)


def _merged(
    old: Sequence[str],
    found: Sequence[str],
    new: Sequence[str],
    key: Callable[[str], str],
    shift: Callable[[str], str | None] | None,
) -> list[str] | None:
    """Return the new lines, or None if one cannot be shifted.

    Lines that `old` also has are taken from the file; the others are shifted.
    """
    if shift is None:
        return None
    merged: list[str] = []
    matcher = SequenceMatcher(None, [key(line) for line in old], [key(line) for line in new], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            same = [i for i, j in zip(range(i1, i2), range(j1, j2), strict=True) if old[i] == new[j]]
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                shifted = found[i] if i in same else shift(new[j])
                if shifted is None:
                    return None
                merged.append(shifted)
            continue
        for line in new[j1:j2]:
            shifted = shift(line)
            if shifted is None:
                return None
            merged.append(shifted)
    return merged


def _shift(old: Sequence[str], found: Sequence[str]) -> Callable[[str], str | None] | None:
    """Return the function that indents a line as in the file.

    Returns None if the indentation differs from line to line.
    """
    known: dict[str, str] = {}
    for wanted, line in zip(old, found, strict=True):
        if not wanted.strip():
            continue
        if known.setdefault(_indent(wanted), _indent(line)) != _indent(line):
            return None

    def shifted(line: str) -> str | None:
        if not line.strip():
            return line.strip()
        own = _indent(line)
        near = max((each for each in known if own.startswith(each)), key=len, default=None)
        if near is not None:
            return known[near] + _like(own[len(near) :], known) + line[len(own) :]
        less = min(known, key=len)  # the line is indented less than every line of `old`
        cut = less[len(own) :]
        if less.startswith(own) and known[less].endswith(cut):
            return known[less][: len(known[less]) - len(cut)] + line[len(own) :]
        return None

    return shifted


def _like(more: str, known: dict[str, str]) -> str:
    """Return further indentation in the file's style.

    A model's spaces become tabs if the file has tabs for them.
    """
    for mine, theirs in known.items():
        if mine and theirs and not mine.strip(" ") and not theirs.strip("\t") and len(mine) % len(theirs) == 0:
            width = len(mine) // len(theirs)
            if more and not more.strip(" ") and len(more) % width == 0:
                return "\t" * (len(more) // width)
    return more


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _undone(text: str) -> str:
    return re.sub(r"\\([ntr'\"`\\$\n])", lambda match: _ESCAPES[match[1]], text)


def _anchored(lines: _Lines, old: str, new: str) -> Iterator[Place]:
    wanted = old.split("\n")
    whole = len(wanted) > 1 and wanted[-1] == ""
    body = wanted[:-1] if whole else wanted
    if len(body) < _LEAST_ANCHORED or not (squeezed(body[0]) and squeezed(body[-1])):
        return
    middle = "\n".join(squeezed(line) for line in body[1:-1])
    for at in range(len(lines.lines) - len(body) + 1):
        found = lines.lines[at : at + len(body)]
        if squeezed(found[0]) != squeezed(body[0]) or squeezed(found[-1]) != squeezed(body[-1]):
            continue
        if SequenceMatcher(None, middle, "\n".join(map(squeezed, found[1:-1])), autojunk=False).ratio() < NEARLY:
            continue
        place = _place(lines, at, body, new, whole, squeezed, True)
        if place is not None:
            yield place
