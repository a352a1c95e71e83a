"""Programs that are languages: those whose text is read here, and those that are doubted."""

import re
from collections.abc import Sequence

from . import programs
from .python_code import doubt_of_python
from .reading import Command, Reading, is_name
from .shell_words import Word
from .unknown import unknown

_SED = re.compile(
    r"(?:(?:\d+|\$|/[^/\n]*/)(?:,(?:\d+|\$|/[^/\n]*/))?)?(?:[pdq=]|s(?P<d>[/|,#:@])(?:(?!(?P=d))[^\n\\]|\\[^\n])*(?P=d)"
    r"(?:(?!(?P=d))[^\n\\]|\\[^\n])*(?P=d)[gpiIm0-9]*)"
)
_SCRIPT = re.compile(r"[\w./][\w./-]*\.(m?js|cjs|ts|rb|pl|php|lua|R|jl)", re.ASCII)


def python(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """Python: the code behind `-c` is read, modules are known by name, files are run."""
    rest = list(args)
    while rest and re.fullmatch(r"-[uBEIsSqO]+|-X|utf8|-W|ignore|default", rest[0].text or ""):
        rest.pop(0)
    first = rest[0].text if rest else None
    if first in ("--version", "-V", "--help") and len(rest) == 1:
        return
    if first == "-c" and len(rest) > 1 and rest[1].text is not None:
        why = doubt_of_python(rest[1].text)
        if why is not None:
            reading.doubt(why)
    elif [word.text for word in rest] in ([], ["-"]) and not is_open and reading.stdin is not None:
        if (why := doubt_of_python(reading.stdin)) is not None:
            reading.doubt(why)
    elif first == "-m" and len(rest) > 1 and rest[1].text in programs.QUIET_PYTHON_MODULES:
        unknown(reading, "pytest", rest[2:], is_fed, is_open)
    elif first is not None and not first.startswith(("-", "/dev", "/proc")) and not is_open and rest[0].is_plain:
        _script(reading, name, first, rest[1:])
    else:
        reading.doubt(f"what {name} runs cannot be told")


def awk(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """awk: its programs may run commands, read and write files."""
    if is_open:
        reading.doubt(f"what {name} is given is known when it runs")
    for word in args:
        text = word.text
        if (
            text is None and ((word.many and not is_name(word)) or (not word.prefix and not word.raw.startswith('"')))
        ) or (text is None and "{" in word.raw):
            reading.doubt(f"what {name} runs is known when it runs")
        elif text is not None and re.search(r"system|getline|[|@`]|^-[filEDS]|^--?[elfi]", text):
            reading.doubt(f"{name} may run a program with {word.raw}")
        elif text is not None and re.search(r">(?!=)", text):
            reading.writes = True


def sed(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """sed: only the plainest scripts are known."""
    if is_open:
        reading.doubt(f"what {name} is given is known when it runs")
    scripts, plain = 0, False
    for place, word in enumerate(args):
        text = word.text
        follows = place > 0 and args[place - 1].text in ("-e", "--expression")
        if text is not None and re.fullmatch(r"-[nErsuz]*(e|i|i\.\w+)?|--(quiet|silent|regexp-extended)", text):
            plain = plain or text.endswith("e")
            continue
        if follows or (not scripts and not plain):
            scripts += 1
            parts = text.split(";") if text is not None else [""]
            if text is None or not (_SED.fullmatch(text) or all(_SED.fullmatch(each.strip()) for each in parts)):
                reading.doubt(f"what {name} does with {word.raw} is not known")
        elif word.prefix.startswith("-") or (text is None and not is_name(word) and not word.raw.startswith('"')):
            reading.doubt(f"what {name} does with {word.raw} is not known")


def interpreter(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """Another language: a file that it runs, and nothing else."""
    first = args[0] if args else None
    if first is not None and len(args) == 1 and first.text in ("--version", "-v", "-V", "--help"):
        return
    script = first is not None and first.is_plain and _SCRIPT.fullmatch(first.text or "")
    if not script or is_open or (first is not None and first.prefix.startswith(("/dev", "/proc"))):
        reading.doubt(f"what {name} runs cannot be told")
        return
    assert first is not None
    _script(reading, name, first.text or "", args[1:])


def _script(reading: Reading, name: str, file: str, args: Sequence[Word]) -> None:
    """A file that is run, with these arguments."""
    reading.runs_files.append(file)
    reading.line.commands.append(Command(name, tuple(args), is_guess=True, is_unknown=True))
    unknown(reading, name, args, False, False)
