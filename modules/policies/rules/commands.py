"""What a shell command line runs.

Each of its programs is read as the tables say.
"""

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
"""Programs that run a text; that text was read as part of the line."""

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
    """Read a command line; never raise.

    `is_fed` says that something is given to it as its stdin; `trusted` are programs that are taken by their names, as
    they are written.
    """
    reading = Reading(trusted, partial(kind_of, trusted))
    reading.source(source, is_fed)
    return reading.line


def kind_of(trusted: tuple[str, ...], name: str) -> Kind:
    """Return what reads the arguments of a program of this name.

    A trusted program is known by its name as it is written.
    """
    low = name.casefold()
    if low in _TABLE:
        return _TABLE[low]
    if is_python(low):
        return languages.python
    if (spec := spec_of(low)) is not None:
        return kinds.by_table(spec)
    return kinds.trusted if name in trusted else kinds.unknown
