"""Finds lines that may hold a text, without parsing the others."""

from collections.abc import Iterator, Sequence


def candidates(block: bytes, needles: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the range of each line with a needle, without the newline."""
    places = [block.find(needle) for needle in needles]
    while True:
        at = min((place for place in places if place >= 0), default=-1)
        if at < 0:
            return
        first = block.rfind(b"\n", 0, at) + 1
        last = block.find(b"\n", at)
        last = len(block) if last < 0 else last
        yield first, last
        places = [
            block.find(needle, last) if 0 <= place <= last else place
            for place, needle in zip(places, needles, strict=True)
        ]
