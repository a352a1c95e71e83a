"""Reads a shell command line into the commands that it surely runs, and what of it cannot be told."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from . import programs
from .programs import WRITE
from .shell_lines import Simple, read_line
from .shell_words import Doubt, Word

_INTEGER = re.compile(r"[+-]?[0-9]+")
_CALCULATED = re.compile(r"[A-Za-z_]\w*\+?=\"?\$\(\([^()]*\)\)\"?", re.ASCII)
_DEEPEST = 12
MOST_COMMANDS = 1_000
_MOST_WORDS = 2_000
_HEAD = re.compile(r"[\w./+@:%^~-]+|\[", re.ASCII)


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a line runs, or may run.

    `program` is its name without the folder. `is_open` says that more words may follow, `is_guess` that it stands in
    the arguments of a program that runs others, where it may be no command at all; `is_unknown` that nothing is known
    of the program.
    """

    program: str
    args: tuple[Word, ...]
    is_open: bool = False
    is_guess: bool = False
    is_unknown: bool = False
    writes: bool = False

    @property
    def is_written_out(self) -> bool:
        """Whether all of its words are known."""
        return not self.is_open and all(word.text is not None for word in self.args)

    def __str__(self) -> str:
        return " ".join([self.program, *(word.raw for word in self.args)])


@dataclass(slots=True)
class Line:
    """What a command line runs; `doubts` say what of it cannot be told, and why."""

    commands: list[Command] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


Kind: TypeAlias = Callable[["Reading", str, Sequence[Word], bool, bool], None]
"""What reads the arguments of a program: given its name, they, whether its stdin is given, and whether more follow."""

KindOf: TypeAlias = Callable[[str], Kind | None]


class Reading:
    """One command line as it is read; what is known of each program is in `kinds`."""

    def __init__(self, trusted: tuple[str, ...], kind_of: KindOf, unknown: Kind) -> None:
        self._kind_of = kind_of
        self._unknown = unknown
        self.line = Line()
        self._trusted = trusted
        self._depth = 0
        self._nested = 0
        self.writes = False
        self._written: list[str | None] = []
        self._copied: set[str] = set()
        self.runs_files: list[str] = []
        self.stdin: str | None = None
        """What the command that is read is given as its stdin, where that stands in the line."""

    def source(self, source: str, is_fed: bool) -> None:
        """Reads a command line, or one inside of it."""
        self._depth += 1
        try:
            found = read_line(source, is_fed=is_fed, depth=self._depth)
        except Doubt as doubt:
            self.doubt(str(doubt))
        else:
            self._check_counted(found)
            for one in found:
                self._simple(one)
        self._depth -= 1
        if self._depth == 0:
            self._check_written()

    def _check_counted(self, found: Sequence[Simple]) -> None:
        """Doubts what is calculated with variables that may hold more than numbers."""
        for name in set().union(*(one.counted for one in found)) - programs.NUMBERS:
            values = [value for one in found for each, value in one.sets if each == name]
            numbers = [_INTEGER.fullmatch(each.text or "") or _CALCULATED.fullmatch(each.raw) for each in values]
            named = any(word.text == name or word.prefix.startswith(f"{name}=") for one in found for word in one.words)
            if not values or not all(numbers) or named:
                self.doubt(f"it calculates with {name}, which may hold more than a number")

    def _check_written(self) -> None:
        """Doubts what may be made by one part of the line and run by another."""
        if self.runs_files and self._may_write_code():
            self.doubt(f"it may write what {self.runs_files[0]} then runs")
        names = {(name or "").rsplit("/", 1)[-1] for name in self._written} | self._copied
        for command in self.line.commands:
            if command.is_unknown and (command.program in names or None in self._written):
                self.doubt(f"it may write what {command.program} then runs")

    def _may_write_code(self) -> bool:
        if self.writes or None in self._written:
            return True
        run = [name.rsplit("/", 1)[-1] for name in self.runs_files]
        names = [name for name in self._written if name is not None]
        return any(name.rsplit("/", 1)[-1] in run or not programs.OUTPUTS.fullmatch(name) for name in names)

    def doubt(self, why: str) -> None:
        """Notes that something cannot be told."""
        if why not in self.line.doubts:
            self.line.doubts.append(why)

    def _simple(self, one: Simple) -> None:
        for name, value in one.sets:
            self.set(name, value)
        writes = False
        for target in one.writes:
            if target.text not in programs.SAFE_TARGETS:
                writes = True
                self._written.append(target.text)
                self._check_target(target)
        if one.words:
            self.stdin = one.stdin
            self.command(one.words, one.is_fed, writes=writes)
            self.stdin = None
        elif writes:
            self.line.commands.append(Command("", (), writes=True))

    def _check_target(self, target: Word) -> None:
        if programs.RUN_BY_OTHERS.fullmatch(target.text if target.text is not None else target.raw.strip('"')):
            self.doubt(f"it writes {target.raw}, which makes programs run others")

    def set(self, name: str, value: Word) -> None:
        """Reads that a variable is set."""
        if name in programs.MODULE_PATHS:
            self.runs_files.append(name)
        elif programs.steers(name) and not (name.endswith("PAGER") and value.text in ("", "cat", "less")):
            self.doubt(f"it sets {name}, which steers what programs do")
        if value.text is not None and holds_commands(value.text):
            self.doubt(f"it keeps a command in {name}")

    def command(self, words: Sequence[Word], is_fed: bool, *, is_open: bool = False, writes: bool = False) -> None:
        """Reads one command, its program and arguments."""
        if self._nested >= _DEEPEST or len(self.line.commands) >= MOST_COMMANDS or len(words) > _MOST_WORDS:
            self.doubt("it has too many words, or too many commands in one another")
            return
        head = words[0]
        if head.text is None or head.many or not head.text:
            self.doubt(f"which program {head.raw or 'this'} is, is known when it runs")
            return
        if not _HEAD.fullmatch(head.text):
            self.doubt(f"{head.raw} is no name that a program has")
            return
        name = self._name(head.text)
        args = tuple(words[1:])
        kind = self._kind_of(name)
        self.line.commands.append(Command(name, args, is_open, is_unknown=kind is None, writes=writes))
        in_place = name in ("sed", "gsed") and any(re.match(r"-\w*i|--in", word.prefix) for word in args)
        if name in WRITE or in_place:
            self.writes = True
        if name in WRITE and is_open:
            self._written.append(None)
        if name in ("tar", "unzip", "patch"):
            for word in args:
                self._check_target(word)
        if name in programs.COPY:
            self._copied |= {re.split(r"[/=]", word.text or word.prefix)[-1] for word in args}
            for word in _targets(name, args):
                self._check_target(word)
        self._nested += 1
        (kind or self._unknown)(self, name, args, is_fed, is_open)
        self._nested -= 1

    def _name(self, text: str) -> str:
        """A program's name without its folder; one in a folder of the agent's making is doubted."""
        name = text.rsplit("/", 1)[-1]
        name = name[:-4] if name.casefold().endswith(".exe") else name
        if "/" not in text or text in self._trusted:
            return name
        folder = text.rsplit("/", 1)[0]
        known = any(re.fullmatch(r"/+".join(["", *each.split("/")[1:]]), folder) for each in programs.TRUSTED_FOLDERS)
        if programs.TOOL_FOLDERS.fullmatch(text):
            self.runs_files.append(text)
        elif not known:
            self.doubt(f"what {text} does, its name does not tell")
        return name


def holds_commands(text: str) -> bool:
    """Whether a text holds what a shell would run if it looked at the text once more."""
    return "$(" in text or "`" in text or "${" in text


def is_name(word: Word) -> bool:
    """Whether a pattern of file names is surely no option."""
    return bool(word.prefix) and not word.prefix.startswith("-") and "$" not in word.raw and "`" not in word.raw


def _targets(name: str, args: Sequence[Word]) -> Sequence[Word]:
    """Those of the arguments of a program that makes files, that may be the files."""
    if name in ("cp", "mv", "ln", "install", "rsync") and not any(
        word.prefix.startswith(("-t", "--t")) for word in args
    ):
        return args[-1:]
    if name == "dd":
        return [Word(None, word.prefix[3:], raw=word.raw) for word in args if word.prefix.startswith("of=")]
    return [word for word in args if "://" not in word.prefix]
