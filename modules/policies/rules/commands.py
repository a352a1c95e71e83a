"""What a shell command line runs: each of its programs is read as what is known of it says."""

from functools import lru_cache, partial

from . import kinds, languages
from .known import PROGRAMS, is_python, spec_of
from .reading import Kind, Line, Reading
from .words import words_of

_SHELLS = words_of(
    """
    sh bash dash ash zsh ksh ksh93 mksh pdksh posh yash rbash oksh
    """
)
READ_THROUGH = _SHELLS | {"eval", "trap"}
"""Programs that run a text, which was read as part of the line."""

_TABLE: dict[str, Kind] = {
    **dict.fromkeys(_SHELLS, kinds.shell),
    **dict.fromkeys(("eval", "trap"), kinds.evaluated),
    **dict.fromkeys(kinds.EVALUATE, kinds.builtin),
    **dict.fromkeys(("cd", "pushd"), kinds.go_to),
    **dict.fromkeys(("source", "."), kinds.sourced),
    **{name: partial(kinds.find, spec=PROGRAMS[name]) for name in ("find", "gfind")},
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), languages.awk),
    **dict.fromkeys(("sed", "gsed"), languages.sed),
    **dict.fromkeys(languages.INTERPRETERS, languages.interpreter),
}


@lru_cache(maxsize=512)
def line_of(source: str, *, is_fed: bool = False, trusted: tuple[str, ...] = ()) -> Line:
    """Reads a command line; never raises.

    `is_fed` says that it is given something as its stdin; `trusted` are programs to be taken by their names, as they
    are written.
    """
    reading = Reading(trusted, partial(kind_of, trusted))
    reading.source(source, is_fed)
    return reading.line


def kind_of(trusted: tuple[str, ...], name: str) -> Kind:
    """What reads the arguments of a program of this name, or of one that is trusted, as it is written."""
    low = name.casefold()
    if low in _TABLE:
        return _TABLE[low]
    if is_python(low):
        return languages.python
    if (spec := spec_of(low)) is not None:
        return kinds.by_table(spec)
    return kinds.trusted if name in trusted else kinds.unknown
