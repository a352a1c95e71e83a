"""Finds the place in a text that an edit means: exactly, else by a ladder of looser matches, each in its turn.

| rung | matches | the new text |
|---|---|---|
| exact | the same characters, line ends aside | as given |
| trailing blanks | lines that are equal but for blanks at their ends | as given |
| indentation | lines that are equal but for their indentation, which is shifted alike everywhere | shifted likewise |
| inner blanks | lines equal when each run of blanks is one | shifted likewise |
| look-alikes | lines equal when typographic quotes, dashes and blanks are plain ones | shifted likewise |
| escapes | the same characters once `\\n`, `\\t`, `\\"` and the like are undone | undone likewise |
| anchors | as many lines, of which the first and the last are equal and those between nearly so | shifted likewise |

The first rung that matches anywhere decides. Where it matches in two places the edit is refused: no looser rung is
tried, and none of the places is guessed. On the rungs that compare lines, a line that the edit leaves as it is stays as
the file has it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

NEARLY = 0.85
"""How much the lines between two anchors must be alike, by difflib's ratio."""

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
    """Where an edit goes: `text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Found:
    """What a rung has found: its name, and every place, those that overlap another too."""

    rung: str
    places: tuple[Place, ...]

    @property
    def apart(self) -> tuple[Place, ...]:
        """The places, from the first on, that overlap none before them."""
        kept: list[Place] = []
        for place in self.places:
            if not kept or place.start >= kept[-1].end:
                kept.append(place)
        return tuple(kept)


def find(text: str, old: str, new: str) -> Found | None:
    """The places of `old` in `text`, on the first rung that has any; all texts with plain line ends."""
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
    """Where `wanted` stands in `lines`, as `key` compares them."""
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
    """A text by its lines, without their ends, and where each begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)


def _same(line: str) -> str:
    return line


def squeezed(line: str) -> str:
    """The line without blanks around it, and with one for each run of them inside."""
    return " ".join(line.split())


def look_alike(line: str) -> str:
    """The line, squeezed, with plain quotes, dashes and blanks for typographic ones."""
    return squeezed(line.translate(_PLAIN))


_RUNGS: tuple[tuple[str, Callable[[str], str], bool], ...] = (
    ("trailing blanks", str.rstrip, False),
    ("indentation", str.strip, True),
    ("inner blanks", squeezed, True),
    ("look-alikes", look_alike, True),
)


def _by_lines(lines: _Lines, old: str, new: str, key: Callable[[str], str], shifts: bool) -> Iterator[Place]:
    """The places whose lines equal those of `old`; where `shifts`, only those indented in a way that can be told."""
    wanted = old.split("\n")
    whole = len(wanted) > 1 and wanted[-1] == ""  # it ends with its last line's end
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
    """The new lines: those that `old` has too are taken from the file, the others shifted; None if they can't be."""
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
    """How a line indented as in `old` is indented in the file; None where that differs from line to line."""
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
        less = min(known, key=len)  # it is indented less than every line of old
        cut = less[len(own) :]
        if less.startswith(own) and known[less].endswith(cut):
            return known[less][: len(known[less]) - len(cut)] + line[len(own) :]
        return None

    return shifted


def _like(more: str, known: dict[str, str]) -> str:
    """What is indented beyond the lines that are known, in tabs where the file has tabs for a model's spaces."""
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
