"""The programs that a shell command line runs, read by the tables."""

from functools import lru_cache, partial

from ..known import is_python, programs, spec_of
from ..programs import kinds, languages
from ..programs.word_lists import words_of
from .plain_commands import Kind, Line, Reading

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
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), languages.awk),
    **dict.fromkeys(("sed", "gsed"), languages.sed),
    **dict.fromkeys(languages.INTERPRETERS, languages.interpreter),
}


@lru_cache(maxsize=512)
def line_of(source: str, *, is_fed: bool = False, trusted: tuple[str, ...] = ()) -> Line:
    """Read a command line; never raise.

    `is_fed` says that the line gets a stdin. `trusted` are programs that are judged by their names as written.
    """
    reading = Reading(trusted, partial(kind_of, trusted))
    reading.source(source, is_fed)
    return reading.line


def kind_of(trusted: tuple[str, ...], name: str) -> Kind:
    """Return the reader of the arguments of a program of this name.

    A trusted program is recognised by its name as written.
    """
    low = name.casefold()
    if low in _TABLE:
        return _TABLE[low]
    if low in ("find", "gfind"):
        return partial(kinds.find, spec=programs()[low])
    if is_python(low):
        return languages.python
    if (spec := spec_of(low)) is not None:
        return kinds.by_table(spec)
    return kinds.trusted if name in trusted else kinds.unknown
