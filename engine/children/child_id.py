"""The parts of a child's id: its place in its parent."""

from hashlib import blake2b

_LONGEST_ID = 160
"""The longest id of a child run, in characters.

A root's id has at most 115 characters: a task's id (100), a hyphen and a suffix of 14. With the digest of a long id
(25), this leaves room for some levels of places. With the endings of its files, such as `.trace.jsonl`, an id stays
below the 240 characters that a trace may name and the 255 bytes of most file systems.
"""


def child_id(parent: str, place: str) -> str:
    """Return the id of a child at a place, such as `run~3.0`.

    A digest replaces the end of a long id: an id names the trace's file, and most file systems allow names of at most
    255 bytes.
    """
    name = f"{parent}~{place}"
    if len(name) <= _LONGEST_ID:
        return name
    root = parent.partition("~")[0][: _LONGEST_ID - 25]
    return f"{root}~{blake2b(name.encode(), digest_size=12).hexdigest()}"
