"""Reads a shell command line into the commands that it surely runs.

It also names the parts of the line whose effect cannot be determined.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from . import variables
from .lines import Simple, read_line
from .words import Doubt, Word
from .written_files import INSTALLED, RUN_BY_OTHERS, SAFE_TARGETS, TOOL_FOLDERS, TRUSTED_FOLDERS, Written

_INTEGER = re.compile(r"[+-]?[0-9]+")
_CALCULATED = re.compile(r"[A-Za-z_]\w*\+?=\"?\$\(\([^()]*\)\)\"?", re.ASCII)
_DEEPEST = 12
MOST_COMMANDS = 1_000
_MOST_WORDS = 2_000
_HEAD = re.compile(r"[\w./+@:%^~-]+|\[", re.ASCII)


@dataclass(slots=True)
class Command:
    """A command that a line runs, or may run.

    `program` is its name without the folder. `is_open` says that more words may follow, `writes` that it is redirected
    into a file, `passes` that its arguments reach unknown programs.

    `unsure` has the places of the arguments with unknown effect, and the reasons; -1 stands for the program itself.
    `cautions` are the places of the arguments that a rule that allows must name.
    """

    program: str
    args: tuple[Word, ...]
    is_open: bool = False
    writes: bool = False
    passes: bool = False
    unsure: list[tuple[int, str]] = field(default_factory=list)
    cautions: set[int] = field(default_factory=set)

    @property
    def is_written_out(self) -> bool:
        """True if the values of all its words are known."""
        return not self.is_open and all(word.text is not None for word in self.args)

    def __str__(self) -> str:
        return " ".join([self.program, *(word.raw for word in self.args)])


@dataclass(slots=True)
class Line:
    """The commands that a command line runs.

    `doubts` name its undetermined parts, with the reasons; `cautions` name the parts that a rule that allows does not
    cover.
    """

    commands: list[Command] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)

    @property
    def all_doubts(self) -> list[str]:
        """The doubts of the line and of its commands."""
        return [*self.doubts, *(why for command in self.commands for _, why in command.unsure)]


Kind: TypeAlias = Callable[["Reading", Command, bool], None]
"""A reader of a program's arguments; the bool says whether the program has a stdin."""

KindOf: TypeAlias = Callable[[str], Kind]


class Reading:
    """One command line while it is read.

    `written` has the files that it writes and runs.
    """

    def __init__(self, trusted: tuple[str, ...], kind_of: KindOf) -> None:
        self._kind_of = kind_of
        self.line = Line()
        self._trusted = trusted
        self._depth = 0
        self._nested = 0
        self.written = Written()
        self.stdin: str | None = None
        """The stdin of the current command, if it is in the line."""

    def source(self, source: str, is_fed: bool) -> None:
        """Read a command line, or one inside it."""
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
            for why in self.written.doubts():
                self.doubt(why)

    def _check_counted(self, found: Sequence[Simple]) -> None:
        """Doubt calculations with variables that may hold more than numbers."""
        for name in set().union(*(one.counted for one in found)) - variables.NUMBERS:
            values = [value for one in found for each, value in one.sets if each == name]
            numbers = [_INTEGER.fullmatch(each.text or "") or _CALCULATED.fullmatch(each.raw) for each in values]
            named = any(word.text == name or word.prefix.startswith(f"{name}=") for one in found for word in one.words)
            if not values or not all(numbers) or named:
                self.doubt(f"it calculates with {name}, which may hold more than a number")

    def doubt(self, why: str) -> None:
        """Record that a part cannot be determined."""
        if why not in self.line.doubts:
            self.line.doubts.append(why)

    def _simple(self, one: Simple) -> None:
        for name, value in one.sets:
            self.set(name, value)
        writes = False
        for target in one.writes:
            if target.text not in SAFE_TARGETS:
                writes = True
                self.write(target)
        if one.words:
            self.stdin = one.stdin
            self.command(one.words, one.is_fed, writes=writes)
            self.stdin = None
        elif writes:
            self.line.commands.append(Command("", (), writes=True))

    def write(self, target: Word) -> None:
        """Record that a file is written."""
        self.written.files.append(target.text)
        if RUN_BY_OTHERS.fullmatch(target.text if target.text is not None else target.raw.strip('"')):
            self.doubt(f"it writes {target.raw}, which makes programs run others")

    def go(self, folder: Word) -> None:
        """Record that the line changes to another folder."""
        text = folder.text
        if text is None or RUN_BY_OTHERS.fullmatch(f"{text.rstrip('/')}/pre-commit"):
            self.written.folder = folder.raw
        if text is None or INSTALLED.fullmatch(f"{text}/"):
            self.written.is_elsewhere = True

    def set(self, name: str, value: Word) -> None:
        """Record that a variable is set."""
        if name in variables.MODULE_PATHS:
            self.written.run(name)
        elif variables.steers(name, None if value.many else value.text):
            self.doubt(f"it sets {name}, which may control what programs do")
        if not variables.is_harmless(name):
            self.line.cautions.append(f"it sets {name}")
        if value.text is not None and holds_commands(value.text):
            self.doubt(f"it keeps a command in {name}")

    def command(self, words: Sequence[Word], is_fed: bool, *, is_open: bool = False, writes: bool = False) -> None:
        """Read one command, its program and its arguments."""
        if self._nested >= _DEEPEST or len(self.line.commands) >= MOST_COMMANDS or len(words) > _MOST_WORDS:
            self.doubt("it has too many words, or too many commands in one another")
            return
        head = words[0]
        if head.text is None or head.many or not head.text:
            self.doubt(f"the program {head.raw or 'name'} is known only at run time")
            return
        if not _HEAD.fullmatch(head.text):
            self.doubt(f"{head.raw} is not a name that a program has")
            return
        command = Command(self._name(head.text), tuple(words[1:]), is_open, writes)
        self.line.commands.append(command)
        self._nested += 1
        self._kind_of(head.text if head.text in self._trusted else command.program)(self, command, is_fed)
        self._nested -= 1

    def _name(self, text: str) -> str:
        """Return a program's name without its folder.

        A program in a folder that the agent made is doubted.
        """
        name = text.rsplit("/", 1)[-1]
        name = name[:-4] if name.casefold().endswith(".exe") else name
        if "/" not in text or text in self._trusted:
            return name
        folder = text.rsplit("/", 1)[0]
        known = any(re.fullmatch(r"/+".join(["", *each.split("/")[1:]]), folder) for each in TRUSTED_FOLDERS)
        if TOOL_FOLDERS.fullmatch(text):
            self.written.run(text)
        elif not known:
            self.doubt(f"the name {text} does not show what it does")
        return name


def holds_commands(text: str) -> bool:
    """Return whether a shell that reads the text again runs commands."""
    return "$(" in text or "`" in text or "${" in text


def is_name(word: Word) -> bool:
    """Return whether a pattern of file names is surely not an option."""
    return bool(word.prefix) and not word.prefix.startswith("-") and "$" not in word.raw and "`" not in word.raw
