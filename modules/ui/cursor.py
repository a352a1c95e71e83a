"""Positions in a run's stream of items, as text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from ...traces.errors import UsageError

_TEXT = re.compile(r"(-?\d{1,15})\.(\d{1,9})((?:,[^,=]+=\d{1,15})*)")


@dataclass(frozen=True, slots=True)
class Cursor:
    """What a reader of a stream has received.

    Args:
        seq: the number of the last record of which it has items.
        count: how many of that record's items it has.
        sent: the number of characters that it has of each part of the answer that was arriving, by the part's name.
    """

    seq: int = -1
    count: int = 0
    sent: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.seq}.{self.count}" + "".join(f",{quote(name, safe='')}={n}" for name, n in self.sent.items())

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Return the cursor of an id; raises UsageError for other text.

        Empty text is the beginning of the stream.
        """
        if not text:
            return cls()
        match = _TEXT.fullmatch(text)
        if match is None:
            raise UsageError(
                f"{text!r:.60} is not the id of an event of this stream, such as 12.3. "
                "Send the last id that you received, or none to start from the beginning."
            )
        pairs = [pair.split("=") for pair in match[3].split(",") if pair]
        return cls(int(match[1]), int(match[2]), {unquote(name): int(n) for name, n in pairs})
