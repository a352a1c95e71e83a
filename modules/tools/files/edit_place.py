"""Finds an edit's place in a text by ever looser matches.

| rung | matches | the new text |
|---|---|---|
| exact | the same characters, except line ends | as given |
| trailing blanks | lines that are equal except for blanks at their ends | as given |
| indentation | lines that are equal except for their indentation, shifted alike everywhere | shifted likewise |
| inner blanks | lines equal when each run of blanks is one | shifted likewise |
| look-alikes | lines equal when typographic quotes, dashes and blanks are plain ones | shifted likewise |
| escapes | the same characters once `\\n`, `\\t`, `\\"` and the like are undone | undone likewise |
| anchors | as many lines; first and last are equal, each between is nearly as the one in its place | shifted likewise |

The first rung that matches anywhere decides. If it matches in two places, the edit is refused: no looser rung is tried,
and no place is guessed. On the rungs that compare lines, lines that the edit does not change stay as the file has them.
On every rung, `indentation.py` then turns new tabs into spaces, or spaces into tabs, if the file has only these.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import islice

from .indentation import shift_between

NEARLY = 0.85
"""The least similarity of the lines between two anchors, by difflib's ratio."""

_LEAST_ANCHORED = 4
_COMPARED = 1_000
"""Characters of two lines that difflib compares: it takes time in proportion to their square."""
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
    """The name of a rung, and its places in order."""

    rung: str
    places: tuple[Place, ...]


MOST_COUNTED = 1_000
"""How many places are found if only one is wanted."""


def find(text: str, old: str, new: str, *, every: bool = False) -> Found | None:
    """Return the places of `old` on the first rung that matches.

    With `every`, these are all places that do not overlap an earlier one; otherwise the first `MOST_COUNTED` places,
    overlapping ones included. The line ends of all three texts are LF.
    """

    def taken(places: Iterator[Place]) -> tuple[Place, ...]:
        return tuple(places if every else islice(places, MOST_COUNTED))

    places = taken(_exact(text, old, new, every))
    if places:
        return Found("exact", places)
    if not old.strip():
        return None
    lines = _Lines(text)
    for rung, key, shifts in RUNGS:
        places = taken(_by_lines(lines, old, new, key, shifts, every))
        if places:
            return Found(rung, places)
    undone = _undone(old)
    if undone != old and undone.strip():
        places = taken(_exact(text, undone, _undone(new), every))
        if places:
            return Found("escapes", places)
    places = taken(_anchored(lines, old, new, every))
    return Found("anchors", places) if places else None


def windows(lines: Sequence[str], wanted: Sequence[str], key: Callable[[str], str]) -> Iterator[int]:
    """Yield the positions of `wanted` in `lines`, compared by `key`.

    Each line is looked at once, as Knuth, Morris and Pratt do it: where lines recur, a comparison of all of `wanted` at
    each position would take the product of both lengths.
    """
    keys = [key(line) for line in wanted]
    borders = _borders(keys)
    matched = 0
    for at, line in enumerate(lines):
        own = key(line)
        while matched and (matched == len(keys) or keys[matched] != own):
            matched = borders[matched - 1]
        if keys[matched] == own:
            matched += 1
        if matched == len(keys):
            yield at - matched + 1


def _borders(keys: Sequence[str]) -> list[int]:
    """Return the border of each beginning of `keys`.

    It is the length of its longest proper beginning that is its end, too.
    """
    borders = [0] * len(keys)
    matched = 0
    for at in range(1, len(keys)):
        while matched and keys[matched] != keys[at]:
            matched = borders[matched - 1]
        matched += keys[matched] == keys[at]
        borders[at] = matched
    return borders


def _exact(text: str, old: str, new: str, every: bool) -> Iterator[Place]:
    at = text.find(old)
    while at >= 0:
        yield Place(at, at + len(old), new)
        at = text.find(old, at + (len(old) if every else 1))


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


RUNGS: tuple[tuple[str, Callable[[str], str], bool], ...] = (
    ("trailing blanks", str.rstrip, False),
    ("indentation", str.strip, True),
    ("inner blanks", squeezed, True),
    ("look-alikes", look_alike, True),
)


def _by_lines(
    lines: _Lines, old: str, new: str, key: Callable[[str], str], shifts: bool, every: bool
) -> Iterator[Place]:
    """Yield the places whose lines equal those of `old`.

    With `shifts`, places with an unclear indentation are skipped.
    """
    edit = _LineEdit(lines, old, new, key, shifts)
    return edit.places(windows(lines.lines, edit.body, key), every)


class _LineEdit:
    """An edit of whole lines.

    `body` are the lines of `old`, `fresh` those of `new`. `whole` says that `old` ends with a line end, and `closes`
    that `new` does, too.
    """

    def __init__(self, lines: _Lines, old: str, new: str, key: Callable[[str], str], shifts: bool) -> None:
        self._lines, self._new, self._key, self._shifts = lines, new, key, shifts
        wanted, fresh = old.split("\n"), new.split("\n")
        self.whole = len(wanted) > 1 and wanted[-1] == ""
        self.body = wanted[:-1] if self.whole else wanted
        self.closes = self.whole and len(fresh) > 1 and fresh[-1] == ""
        self.fresh = fresh[:-1] if self.closes else fresh

    def places(self, found: Iterable[int], every: bool) -> Iterator[Place]:
        """Yield the places that begin at the lines `found`.

        With `every`, a place that overlaps an earlier one is left out.
        """
        free = 0
        for at in found:
            place = self._place(at) if at >= free else None
            if place is not None:
                free = at + len(self.body) if every else 0
                yield place

    def _place(self, at: int) -> Place | None:
        lines = self._lines
        merged = self._merged(lines.lines[at : at + len(self.body)])
        if merged is None:
            return None
        start, end = lines.starts[at], lines.starts[at + len(self.body)]
        at_end = end > len(lines.text)
        end = min(end, len(lines.text))
        text = "\n".join(merged)
        if not self.whole:
            return Place(start, end if at_end else end - 1, text)
        if self.closes and not at_end:
            return Place(start, end, text + "\n")
        return Place(start, end, "" if self._new == "" else text)

    @cached_property
    def _kept(self) -> dict[int, int]:
        """Map each new line that `old` also has to its line there."""
        old, new = ([self._key(line) for line in text] for text in (self.body, self.fresh))
        blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        pairs = [(block.b + number, block.a + number) for block in blocks for number in range(block.size)]
        return {j: i for j, i in pairs if self.body[i] == self.fresh[j]}

    def _merged(self, found: Sequence[str]) -> list[str] | None:
        """Return the new lines, or None if one cannot be shifted.

        Lines that `old` also has are taken from the file; the others are shifted.
        """
        shift = shift_between(self.body, found) if self._shifts else _same
        if shift is None:
            return None
        merged: list[str] = []
        for number, line in enumerate(self.fresh):
            kept = self._kept.get(number)
            shifted = shift(line) if kept is None else found[kept]
            if shifted is None:
                return None
            merged.append(shifted)
        return merged


def _undone(text: str) -> str:
    return re.sub(r"\\([ntr'\"`\\$\n])", lambda match: _ESCAPES[match[1]], text)


def _nearly(wanted: Sequence[str], found: Sequence[str]) -> bool:
    """Return whether lines are similar, each to the one in its place."""
    whole = sum(map(len, wanted)) + sum(map(len, found))
    left = (1 - NEARLY) * whole  # characters that may differ
    for mine, theirs in zip(wanted, found, strict=True):
        if mine != theirs:
            left -= _differing(mine, theirs, left)
            if left < 0:
                return False
    return True


def _differing(one: str, other: str, most: float) -> float:
    """Return how many characters of two lines differ.

    Beyond `most`, the number may be too small.
    """
    size = len(one) + len(other)
    if size > _COMPARED:
        return size - 2 * _same_ends(one, other)
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    for ratio in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio):  # the quick ones are upper bounds
        differing = (1 - ratio()) * size
        if differing > most:
            break
    return differing


def _same_ends(one: str, other: str) -> int:
    """Return the number of equal characters at both ends of two texts."""
    start = _same_start(one, other)
    return start + _same_start(one[start:][::-1], other[start:][::-1])


def _same_start(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _anchored(lines: _Lines, old: str, new: str, every: bool) -> Iterator[Place]:
    edit = _LineEdit(lines, old, new, squeezed, True)
    first, *middle, final = map(squeezed, edit.body) if len(edit.body) >= _LEAST_ANCHORED else ("", "")
    if not (first and final):
        return iter(())
    own = list(map(squeezed, lines.lines))
    further = len(edit.body) - 1
    starts = (
        at
        for at in range(len(own) - further)
        if own[at] == first and own[at + further] == final and _nearly(middle, own[at + 1 : at + further])
    )
    return edit.places(starts, every)
