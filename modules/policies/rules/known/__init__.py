"""Known programs: their sub-commands and harmless options.

Each file is the table of one family, in the form that `options` reads. To add a program, ask of each option: can its
value, or the file that the value names, make the program start another program, or run code? If so, or if this is
unknown, omit the option: omitted options are doubted.
"""

import re
from functools import cache

from ..programs.options import Spec, read_tables
from . import builds, files, git, packages, services, wrappers

_VALUES = {**files.VALUES, **git.VALUES, **builds.VALUES, **packages.VALUES, **services.VALUES}
_PYTHONS = re.compile(r"(python|pypy)[0-9.]*t?")
_VERSIONED = re.compile(r"(.*?)-?[0-9.]+")


@cache
def programs() -> dict[str, Spec]:
    """Return the programs of all tables, by name.

    They are read when the first command line is, as this takes longer than importing all that policies need.
    """
    return read_tables(
        _VALUES, files.TABLE, files.FIND, wrappers.TABLE, git.TABLE, builds.TABLE, packages.TABLE, services.TABLE
    )


def spec_of(name: str) -> Spec | None:
    """Return the known facts of a program of this name, or None."""
    low = name.casefold()
    found = programs().get(low)
    if found is None and (versioned := _VERSIONED.fullmatch(low)) and versioned[1] in ("pip", "gcc", "g++", "clang"):
        return programs()[versioned[1]]
    return found


def is_python(name: str) -> bool:
    """Return whether a program of this name is Python."""
    return _PYTHONS.fullmatch(name.casefold()) is not None
