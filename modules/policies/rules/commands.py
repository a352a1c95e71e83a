"""What a shell command line runs: each of its programs is read as what is known of it says."""

from functools import lru_cache

from . import git, kinds, languages, programs
from .reading import Kind, Line, Reading
from .unknown import unknown

_TABLE: list[tuple[frozenset[str], Kind]] = [
    (programs.WRAPPERS, kinds.wrapper),
    (programs.SHELLS, kinds.shell),
    (frozenset(["eval", "trap"]), kinds.evaluated),
    (programs.BARE, kinds.bare),
    (frozenset(["find", "gfind"]), kinds.find),
    (frozenset(["git"]), git.git),
    (frozenset(["tar", "gtar", "bsdtar"]), git.tar),
    (frozenset(["awk", "gawk", "mawk", "nawk"]), languages.awk),
    (frozenset(["sed", "gsed"]), languages.sed),
    (programs.VIEWERS, kinds.viewer),
    (programs.OTHER_SHELLS | programs.DOUBTED, kinds.doubted),
]


@lru_cache(maxsize=512)
def line_of(source: str, *, is_fed: bool = False, trusted: tuple[str, ...] = ()) -> Line:
    """Reads a command line; never raises.

    `is_fed` says that it is given something as its stdin; `trusted` are programs to be taken by their names, as they
    are written.
    """
    reading = Reading(trusted, kind_of, unknown)
    reading.source(source, is_fed)
    return reading.line


def kind_of(name: str) -> Kind | None:
    """What reads the arguments of a program of this name; None where nothing is known of it."""
    low = name.casefold()
    for names, kind in _TABLE:
        if low in names:
            return kind
    if programs.PYTHONS.fullmatch(low):
        return languages.python
    return languages.interpreter if programs.INTERPRETERS.fullmatch(low) else None
