"""Programs that nothing is known of: their arguments tell no more than what stands in them."""

import re
from collections.abc import Sequence

from .programs import words_of
from .reading import Reading, is_name
from .shell_words import Word

_TESTERS = words_of(
    """
    pytest mypy ruff black isort flake8 pylint pyright eslint prettier tsc jest vitest yq shellcheck pip pip3
    """
)
_SPOKEN = re.compile(r"[\w\s./:=@,+%~^-]*", re.ASCII)
_ORDINARY = re.compile(r"[\w\s./:=@,+%~^\"'*()\[\]\-]*", re.ASCII)


def unknown(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """A program that nothing is known of: plain words do no harm, what could be a command in them is doubted."""
    allowed = _ORDINARY if name in _TESTERS else _SPOKEN
    if is_fed and name not in _TESTERS:
        reading.doubt(f"what {name} does with its input is not known")
    if is_open:
        reading.doubt(f"what {name} is given is known when it runs")
    for word in args:
        if word.text is None and not (word.many and is_name(word)):
            reading.doubt(f"what {name} is given in {word.raw} is known when it runs")
        elif word.text is not None and not allowed.fullmatch(word.text):
            reading.doubt(f"what {name} does with {word.raw} is not known")
    if name == "make":
        reading.runs_files.append(name)
