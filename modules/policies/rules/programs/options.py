"""Options of programs, read as the programs read them.

The tables have the options that are known to do no harm. A table has a line for each program or sub-command:

    git fetch,pull: -q -v --depth= -j= --recurse-submodules? :runs

`--x` is an option without a value, `--x=` has one, and `--x?` may have one after `=`. A final `!` says that a rule that
allows must name the option. A final `>` says this too, and that the option writes the file that its value names. `*`
stands for all options. `@name` adds the options of a line `@name:`. `:mark` or `:mark=value` marks the program; see
`Spec`.

An option that is in no table is unknown. A list of harmful options could not be complete: long options can be
shortened, short ones are written together, and new versions add options.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from ..shell.words import Word

_TOKEN = re.compile(r"(--?[^=?!<>]+)([=?]?)(?:<(\w+)>)?([!>]?)")
_SETS = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
PLAIN = re.compile(r"[\w\s./:=@,+%~^-]*", re.ASCII)
"""A word that no language could take for code."""


class Option(NamedTuple):
    """An option of a program.

    `value` says whether it has a value ("", "=" or "?"), `mark` is its mark ("", "!" or ">"), and `values` are the
    values that are known.
    """

    value: str
    mark: str
    values: re.Pattern[str] | None = None


@dataclass(slots=True)
class Spec:
    """The known facts of a program or sub-command.

    Marks:
        command: its operands, after so many, are a command that it runs.
        sets: variables may be set before that command.
        open: its input is added to that command.
        joined: a shell runs that command, as one text.
        passes: its operands reach unknown programs.
        runs: it runs files of the project; with a value, files with one of these endings.
        variables: operands may set variables.
        settings: operands are a setting of git.
        out: its operands, from this one on, are files that it writes.
        makes: its operands are files that it makes; a rule that allows need not name them.
        fed: its stdin may be a command.
        single: long options have one dash.
        bundle: the first word is a cluster without a dash.
        stops: its options end at the first operand.
        nodash: none of its operands begins with a dash.
        plus, at: operands that begin with `+` or `@` are options, or contain options.
        toolchain: operands that begin with `+` name a toolchain.
        names: no operand has a slash, which would lead to any file.
        inherits: sub-commands have its options as well.
        alone: it needs no sub-command.
        scripts: the name of a project's script may replace that of a sub-command.
    """

    name: str
    options: dict[str, Option] = field(default_factory=dict)
    any_option: bool = False
    marks: dict[str, str] = field(default_factory=dict)
    children: dict[str, "Spec"] = field(default_factory=dict)
    parent: "Spec | None" = None
    settings: re.Pattern[str] | None = None

    def option(self, name: str) -> Option | None:
        """Return the option of exactly this name, possibly inherited, or None."""
        found, spec = self.options.get(name), self.parent
        while found is None and spec is not None:
            found = spec.options.get(name) if "inherits" in spec.marks else None
            spec = spec.parent
        return found

    def attached(self, text: str) -> tuple[str, Option] | None:
        """Return the option that starts a text, with its name, or None.

        The rest of the text is its value. Programs whose long options have one dash take values this way.
        """
        names = [name for name, option in self.options.items() if option.value == "?" and text.startswith(name)]
        return (max(names, key=len), self.options[max(names, key=len)]) if names else None

    def near(self, name: str) -> Option:
        """Return the option that a shortened name may stand for.

        It is used for programs whose options are all known. An option with a mark has priority; without one, the result
        is a harmless option.
        """
        marked = [option for long, option in self.options.items() if option.mark and long.startswith(name)]
        return marked[0] if marked else Option("?", "")


@dataclass(slots=True)
class Arguments:
    """The words after a program's name, by their meaning.

    Places are positions in the list of words. `unsure` has the places of unknown words, with the reason; `cautions` the
    places of words that a rule that allows must name; `written` the files that options name; `command` the place where
    the command that the program runs begins.
    """

    spec: Spec
    operands: list[int] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)
    unsure: list[tuple[int, str]] = field(default_factory=list)
    cautions: set[int] = field(default_factory=set)
    written: list[Word] = field(default_factory=list)
    command: int | None = None


def read_tables(values: Mapping[str, str], *texts: str) -> dict[str, Spec]:
    """Return the programs of some tables, by name.

    `values` has the patterns of values that the tables name.
    """
    kinds = {name: re.compile(pattern) for name, pattern in values.items()}
    lines = [line.split(": ", 1) for text in texts for line in _lines(text)]
    shared = {head: rest for head, rest in lines if head.startswith("@")}
    root = Spec("")
    for head, rest in lines:
        if head.startswith("@"):
            continue
        for words in product(*(word.split(",") for word in head.split())):
            spec = root
            for word in words:
                parent = spec
                spec = parent.children.setdefault(word, Spec(f"{parent.name} {word}".strip(), parent=parent))
            _add(spec, rest.split(), shared, kinds)
    return root.children


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a table.

    An indented line continues the line before it.
    """
    joined = re.sub(r"\n[ \t]+", " ", text.strip("\n"))
    return (f"{line} " for line in joined.split("\n") if line.strip() and not line.startswith("#"))


def _add(spec: Spec, tokens: Sequence[str], shared: Mapping[str, str], kinds: Mapping[str, re.Pattern[str]]) -> None:
    for token in tokens:
        if token == "*":
            spec.any_option = True
        elif token.startswith("@"):
            _add(spec, shared[token].split(), shared, kinds)
        elif token.startswith(":"):
            name, _, value = token[1:].partition("=")
            spec.marks[name] = value
            if name == "settings":
                spec.settings = kinds[value]
        elif (found := _TOKEN.fullmatch(token)) is not None:
            spec.options[found[1]] = Option(found[2], found[4], kinds[found[3]] if found[3] else None)
        else:
            raise ValueError(f"{token!r} in the table of {spec.name} is not an option")


def read_arguments(spec: Spec, args: Sequence[Word], *, is_open: bool = False) -> Arguments:
    """Return the arguments of a program, by their meaning."""
    return _Reader(spec, args).read(is_open)


_ODD = {"plus": "+", "nodash": "-", "at": "@"}
"""The character with which no operand may begin, by mark."""
_MORE = re.compile(r"\+(?:stable|beta|nightly|[0-9.]+)[\w.-]*")
_SCRIPT = re.compile(
    r"(?:build|dev|start|serve|test|tests|lint|format|fmt|typecheck|type-check|types|check|clean|preview|watch|docs|e2e|"
    r"coverage|prepare|generate|gen|codegen|compile|bundle|db|migrate|seed|web|ios|android|server|client|ci|validate|fix|"
    r"release|package|dist|bench|example|prebuild|postbuild|export|analyze|deploy|setup|bootstrap|unit|integration|debug|"
    r"demo|site|website)(?:[:.-][\w:.-]+)?"
)
"""Names of a project's scripts; other words are programs installed in the project."""
_COUNTED = re.compile(
    r"\$\((?:nproc|getconf _NPROCESSORS_ONLN|sysctl -n hw\.n?cpu|id -[ug]|git rev-parse (?:--short )?HEAD|"
    r"date \+%(?:[YmdHMSFsTjyu]|%(?=[YmdHMSFsTjyu])|[0-9_.:-])*)\)|"
    r"\$(?:UID|EUID|RANDOM|SECONDS|PPID|[$?#!])(?!\w)|\$\(\([^()]*\)\)"
)
"""Substitutions that give a number, a date or a digest.

Their text has no blanks, so it is neither an option nor several words.
"""


class _Reader:
    def __init__(self, spec: Spec, args: Sequence[Word]) -> None:
        self.args = [_settled(word) for word in args]
        self.found = Arguments(spec)
        self.at = 0

    def read(self, is_open: bool) -> Arguments:
        found, ended = self.found, False
        if "bundle" in found.spec.marks:
            self._bundle()
        while self.at < len(self.args):
            word = self.args[self.at]
            ended = ended or ("stops" in found.spec.marks and bool(found.operands))
            if not ended and word.text == "--":
                ended = True
                self.at += 1
            elif not ended and word.prefix.startswith("-") and word.text != "-":
                self._option(word)
            elif not ended and not self._is_operand(word):
                self._unsure(f"what {found.spec.name} is given in {word.raw} is known when it runs")
                self.at += 1
            elif not self._operand(word):
                return found
        spec = found.spec
        if spec.children and "alone" not in spec.marks and found.command is None and not self._asks():
            found.unsure.append((-1, f"which command of {spec.name} it is, is not known"))
        is_free = spec.any_option and not spec.children and "passes" not in spec.marks
        if is_open and not is_free and "open" not in spec.marks:
            found.unsure.append((-1, f"what {spec.name} is given is known when it runs"))
        return found

    def _asks(self) -> bool:
        """Return whether only the version or the help is requested.

        This includes a program without arguments.
        """
        return all(word.text in ("--version", "--help", "-v", "-V", "-h", "-version") for word in self.args)

    def _unsure(self, why: str) -> None:
        self.found.unsure.append((self.at, why))

    def _is_operand(self, word: Word) -> bool:
        """Return whether a word is an operand or may count as one."""
        if word.text is not None and not word.many:
            return True
        if self.found.spec.any_option and not self.found.spec.children and "command" not in self.found.spec.marks:
            return True
        return bool(word.prefix) and not (word.many and ("$" in word.raw or "`" in word.raw))

    def _operand(self, word: Word) -> bool:
        """Read an operand, and return whether to continue."""
        found, spec = self.found, self.found.spec
        if spec.children and not found.operands:
            child = spec.children.get(word.text or "")
            if child is not None:
                found.spec = child
                self.at += 1
                return True
            if "toolchain" in spec.marks and _MORE.fullmatch(word.text or ""):
                self.at += 1
                return True
            if "scripts" not in spec.marks:
                self._unsure(f"{spec.name} {word.raw} is not known")
                self._rest()
                return False
            if not _SCRIPT.fullmatch(word.text or ""):
                found.command = self.at
                return False
            found.spec = Spec(f"{spec.name} {word.text}", marks={"passes": "", "runs": "", "stops": ""}, parent=spec)
        if "sets" in spec.marks and _SETS.match(word.prefix):
            found.sets.append(self.at)
        elif "command" in spec.marks and len(found.operands) >= int(spec.marks["command"] or 0):
            found.command = self.at
            return False
        else:
            found.operands.append(self.at)
            odd = [char for mark, char in _ODD.items() if mark in spec.marks]
            if word.prefix[:1] in odd or ("names" in spec.marks and (word.text is None or "/" in word.text)):
                self._unsure(f"what {spec.name} does with {word.raw} is not known")
        self.at += 1
        return True

    def _rest(self) -> None:
        """Read the words of an unknown sub-command."""
        for place in range(self.at + 1, len(self.args)):
            word = self.args[place]
            if word.text is None or not PLAIN.fullmatch(word.text):
                self.found.unsure.append((place, f"what {self.found.spec.name} does with {word.raw} is not known"))

    def _option(self, word: Word) -> None:
        known = word.text is not None
        if self.found.spec.option(name := word.prefix.split("=", 1)[0]) is not None and (known or "=" in word.prefix):
            self._named(word, name, "=" in word.prefix)
        elif "single" in self.found.spec.marks or word.prefix.startswith("--"):
            other = name[1:] if "single" in self.found.spec.marks and name.startswith("--") else name
            if self.found.spec.option(other) is not None and (known or "=" in word.prefix):
                self._named(word, other, "=" in word.prefix)
            elif (attached := self.found.spec.attached(word.prefix)) is not None and known:
                self._take(attached[1], word, is_attached=True, value=word.prefix[len(attached[0]) :])
            elif self.found.spec.any_option:
                self._take(self.found.spec.near(name), word, is_attached=True)
            else:
                self._unknown(word)
        elif re.fullmatch(r"-[0-9]+", word.text or "") and (digits := self.found.spec.option("-#")) is not None:
            self._take(digits, word, is_attached=True)
        else:
            self._cluster(word, word.prefix[1:])

    def _unknown(self, word: Word) -> None:
        self._unsure(f"what {self.found.spec.name} does with {word.raw} is not known")
        self.at += 1

    def _named(self, word: Word, name: str, has_value: bool) -> None:
        option = self.found.spec.option(name)
        assert option is not None
        if has_value and not option.value:
            self._unknown(word)
        else:
            self._take(option, word, is_attached=has_value or option.value != "=")

    def _cluster(self, word: Word, letters: str) -> None:
        """Read short options that are written together.

        The rest of the word after an option with a value is that value.
        """
        for place, letter in enumerate(letters):
            option = self.found.spec.option(f"-{letter}")
            if option is None and self.found.spec.any_option:
                option = Option("", "")
            if option is None:
                self._unknown(word)
                return
            is_last = place == len(letters) - 1
            if option.value or (option.mark and is_last):
                is_attached = option.value != "=" or not is_last or word.text is None
                self._take(option, word, is_attached=is_attached, value=letters[place + 1 :])
                return
            if option.mark:
                self.found.cautions.add(self.at)
        if word.text is None and not self.found.spec.any_option:
            self._unknown(word)
        else:
            self.at += 1

    def _take(self, option: Option, word: Word, *, is_attached: bool, value: str | None = None) -> None:
        """Take an option with its value.

        The value is attached to it, or is the next word.
        """
        places = [self.at]
        if not is_attached and self.at + 1 < len(self.args):
            places.append(self.at + 1)
        given = self.args[places[-1]]
        if given.many and not self.found.spec.any_option and ("$" in given.raw or "`" in given.raw or not given.prefix):
            self._unsure(f"what {self.found.spec.name} is given in {given.raw} is known when it runs")
        if len(places) == 1:
            text = value if value is not None else word.prefix.partition("=")[2]
            given = Word(text if word.text is not None and option.value else None, text, word.many, word.raw)
        if option.values is not None and not option.values.fullmatch(given.text if given.text is not None else "\0"):
            self._unsure(f"what {self.found.spec.name} does with {given.raw} is not known")
        if option.mark:
            self.found.cautions.update(places)
        if option.mark == ">":
            self.found.written.append(given)
        self.at += len(places)

    def _bundle(self) -> None:
        """Read a cluster without a dash.

        Its values are the words that follow, in their order.
        """
        first = self.args[0] if self.args else None
        if first is None or first.prefix.startswith("-") or first.text is None:
            return
        options = [self.found.spec.option(f"-{letter}") for letter in first.text]
        if None in options:
            self._unknown(first)
            return
        self.at = 1
        for option in options:
            if option is not None and option.value == "=" and self.at < len(self.args):
                self.at -= 1  # the option is in the word before its value
                self._take(option, first, is_attached=False)


def _settled(word: Word) -> Word:
    """Return the word, with a digit for each harmless substitution."""
    if word.text is not None or "$" not in word.raw:
        return word
    text = _COUNTED.sub("0", word.raw).replace('"', "")
    return Word(text, text, False, word.raw) if re.fullmatch(r"[\w./:=@,+-]*", text, re.ASCII) else word
