"""Readers of programs that run code in a language.

All but plain code is doubted.
"""

import re
from collections.abc import Sequence

from ..known import spec_of
from ..shell.plain_commands import Command, Reading, is_name
from ..shell.words import Word
from ..shell.written_files import INSTALLED
from .awk_code import doubt_of_awk
from .kinds import apply
from .options import PLAIN, read_arguments
from .python_code import doubt_of_python
from .word_lists import words_of

_SED = re.compile(
    r"(?:(?:\d+|\$|/[^/\n]*/)(?:,(?:\d+|\$|/[^/\n]*/))?!?)?\s*"
    r"(?:[pdq=]|s(?P<d>[/|,#:@])(?:(?!(?P=d))[^\n\\]|\\[^\n])*(?P=d)"
    r"(?:(?!(?P=d))[^\n\\]|\\[^\n])*(?P=d)[gpiI0-9]*)"
)
_SCRIPT = re.compile(
    r"[\w./][\w./-]*\.(m?js|cjs|m?ts|rb|pl|php|lua|R|jl|exs?)|(?:\./)?artisan|bin/console|vendor/bin/(?:phpunit|pest|phpstan|pint|phpcs)",
    re.ASCII,
)
_PROJECT = re.compile(r"(?:src|app|apps|scripts?|tools|tests?|examples?|benchmarks?|bench|experiments?)(?:\.\w+)*")

_PROGRAMS_OF = {"sphinx": "sphinx-build", "pre_commit": "pre-commit", "spacy": "spacy"}
_MODULES = words_of(
    """
    pytest unittest pip venv ensurepip json.tool http.server zipfile tarfile compileall tabnanny py_compile site
    platform sysconfig calendar this uuid dis tokenize build coverage twine virtualenv poetry pipx pipenv uv pdm
    hatch tox nox pre_commit sphinx mkdocs jupyter mypy ruff black isort flake8 pylint pyright bandit yapf
    autopep8 autoflake codespell vulture radon pyflakes pycodestyle pydocstyle uvicorn gunicorn hypercorn flask
    celery alembic streamlit fastapi django nltk.downloader ipykernel spacy pip_audit pyinstaller
    """
)
"""Modules that are programs."""

_LITERAL = r"(?:[0-9+\-*/%.()\s]|'[\w\s.,:;!?+-]*'|\"[\w\s.,:;!?+-]*\")"
_KNOWN_VALUES = (
    r"process\.(?:version|arch|platform|versions\.\w+)|require\(['\"]\./(?:[\w-]+/)*(?:package|lerna)\.json['\"]\)(?:\.\w+)*|"
    r"PHP_VERSION|RUBY_VERSION"
)
_PLAIN = re.compile(
    rf"\s*(?:print|puts|p|say|echo|console\.log)?\s*\(?(?:{_LITERAL}|{_KNOWN_VALUES})*\)?[\s;]*", re.ASCII
)
"""Code in any language that calculates with numbers or prints a text."""

INTERPRETERS = {
    "node": ("-e", "-p", "-pe", "--eval", "--print"),
    "nodejs": ("-e", "-p"),
    "perl": ("-e", "-E", "-le"),
    "ruby": ("-e",),
    "php": ("-r",),
    "lua": ("-e",),
    "luajit": ("-e",),
    "rscript": ("-e",),
    "julia": ("-e", "-E"),
    "elixir": ("-e",),
}
"""Languages, and the options that code follows."""

_NODE_OPTION = re.compile(
    r"--(?:inspect|inspect-brk|watch|enable-source-maps|test|no-warnings|max-old-space-size=\d+|env-file=[\w./-]+)"
)


def python(reading: Reading, command: Command, is_fed: bool) -> None:
    """Read Python: the code after `-c`, a module, or a file.

    Modules are known by name, and files are run.
    """
    rest = list(command.args)
    while rest and re.fullmatch(r"-[uBEIsSqO]+|-X|utf8|-W|ignore|default", rest[0].text or ""):
        rest.pop(0)
    first = rest[0].text if rest else None
    second = rest[1].text if len(rest) > 1 else None
    if first in ("--version", "-V", "-VV", "--help") and len(rest) == 1:
        return
    if first == "-c" and second is not None:
        _doubt(reading, doubt_of_python(second))
        if "import" in second:
            reading.written.run("python -c")
    elif [word.text for word in rest] in ([], ["-"]) and not command.is_open and reading.stdin is not None:
        _doubt(reading, doubt_of_python(reading.stdin))
    elif first == "-m" and second is not None and not command.is_open:
        _module(reading, command, second, rest[2:], is_fed)
    elif first is not None and not first.startswith("-") and not command.is_open and rest[0].is_plain:
        _script(reading, command, first, rest[1:])
    else:
        reading.doubt(f"it is unknown what {command.program} runs")


def _doubt(reading: Reading, why: str | None) -> None:
    if why is not None:
        reading.doubt(why)


def _module(reading: Reading, command: Command, module: str, args: Sequence[Word], is_fed: bool) -> None:
    """Read a Python module that is run by name.

    The module is a program of the tables, or one of the project.
    """
    spec = spec_of(_PROGRAMS_OF.get(module, module)) if module in _MODULES else None
    if spec is not None:
        shift = len(command.args) - len(args)
        found = read_arguments(spec, args)
        inner = Command(module, tuple(args), writes=command.writes)
        apply(reading, inner, found, is_fed)
        command.passes = inner.passes
        command.unsure += [(place + shift if place >= 0 else -1, why) for place, why in inner.unsure]
        command.cautions |= {place + shift for place in inner.cautions}
    elif _PROJECT.fullmatch(module):
        _script(reading, command, module, args)
    elif module in ("torch.distributed.launch", "torch.distributed.run", "doctest"):
        files = [word for word in args if not word.prefix.startswith("-")]
        _script(reading, command, (files[0].text if files else None) or "/usr/", args)
    else:
        reading.doubt(f"it is unknown what the module {module} runs")


def _script(reading: Reading, command: Command, file: str, args: Sequence[Word]) -> None:
    """Read a file that is run with these arguments."""
    if INSTALLED.fullmatch(file) or reading.written.is_elsewhere:
        reading.doubt(f"the name {file} does not show what it does")
    reading.written.run(file)
    command.passes = True
    for word in args:
        if word.text is None and not (word.many and is_name(word)):
            reading.doubt(f"the argument {word.raw} of {file} is known only at run time")
        elif word.text is not None and not PLAIN.fullmatch(word.text):
            reading.doubt(f"it is unknown what {file} does with {word.raw}")


def interpreter(reading: Reading, command: Command, is_fed: bool) -> None:
    """Read another language, with its file or its plain code."""
    name, args = command.program.casefold(), command.args
    while name in ("node", "nodejs") and args and _NODE_OPTION.fullmatch(args[0].text or ""):
        args = args[1:]
    if len(args) > 1 and (args[0].text, args[1].text) in (("-r", "dotenv/config"), ("-r", "ts-node/register")):
        args = args[2:]
    texts = [word.text for word in args]
    if name == "php" and len(texts) == 2 and texts[0] == "-S" and re.fullmatch(r"[\w.]+:\d+", texts[1] or ""):
        return
    if len(texts) == 1 and texts[0] in ("--version", "-v", "-V", "--help"):
        return
    if len(texts) == 2 and texts[0] in INTERPRETERS.get(name, ()) and not command.is_open:
        if not _PLAIN.fullmatch(texts[1] if texts[1] is not None else "\0"):
            reading.doubt(f"it is unknown what {name} runs with {args[1].raw}")
        return
    first = args[0] if args else None
    if first is None or command.is_open or not (first.is_plain and _SCRIPT.fullmatch(first.text or "")):
        reading.doubt(f"it is unknown what {name} runs")
        return
    _script(reading, command, first.text or "", args[1:])


def awk(reading: Reading, command: Command, is_fed: bool) -> None:
    """Read awk.

    Its program may run commands, and read and write files. Only the plainest programs are known.
    """
    name, args = command.program, command.args
    at, word = 0, None
    while at < len(args) and (option := re.match(r"-[Fv]|--(?=$)", args[at].prefix)):
        whole = args[at].text
        if option[0] == "--" and whole != "--":
            break
        at += 2 if whole in ("-F", "-v") else 1
        if option[0] == "--":
            break
    word = args[at] if at < len(args) else None
    if [each.text for each in args] in (["--version"], ["-W", "version"]):
        return
    if any(each.many and not is_name(each) for each in args):
        reading.doubt(f"an argument of {name} is known only at run time")
    if command.is_open or word is None or word.text is None or word.prefix.startswith("-"):
        reading.doubt(f"what {name} runs is known only at run time")
        return
    why, writes = doubt_of_awk(word.text)
    if why is not None:
        reading.doubt(f"{name} may run a program with {word.raw}")
    if writes:
        command.cautions.add(at)
        reading.written.files.append(None)


def sed(reading: Reading, command: Command, is_fed: bool) -> None:
    """Read a call of sed; only the plainest scripts are known."""
    name, args = command.program, command.args
    if command.is_open:
        reading.doubt(f"an argument of {name} is known only at run time")
    has_script = any(re.fullmatch(r"-[nErsuz]*e|--expression", word.text or "") for word in args)
    for place, word in enumerate(args):
        text = word.text
        after = args[place - 1].text or "" if place else ""
        follows = re.fullmatch(r"-[nErsuz]*e|--expression", after) is not None
        if (
            not follows
            and text is not None
            and re.fullmatch(
                r"-[nErsuz]*(e|i|i\.\w+)?|--expression|--quiet|--silent|"
                r"--regexp-extended|--in-place(=\.\w+)?|--version",
                text,
            )
        ):
            if "i" in text[:4] and re.match(r"-[nErsuz]*i|--in-place", text):
                command.cautions.add(place)
                reading.written.files.append(args[-1].text)
            continue
        if follows or not has_script:
            has_script = True
            parts = re.split(r"[;\n]", text) if text is not None else [""]
            if text is None or not (_SED.fullmatch(text) or all(_SED.fullmatch(each.strip()) for each in parts)):
                reading.doubt(f"it is unknown what {name} does with {word.raw}")
        elif word.prefix.startswith("-") or (text is None and not is_name(word) and not word.raw.startswith('"')):
            reading.doubt(f"it is unknown what {name} does with {word.raw}")
        elif text is None and word.raw.startswith('"') and not word.prefix:
            reading.doubt(f"the argument {word.raw} of {name} is known only at run time")
