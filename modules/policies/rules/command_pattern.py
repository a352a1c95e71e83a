"""Patterns of commands, such as `git push *`.

They decide whether a command may match, and whether it surely does.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from .shell.plain_commands import Command
from .shell.words import Word

_REST = "*"


@dataclass(frozen=True)
class CommandPattern:
    """A program and its first arguments, each with `*` and `?`.

    A final `*` stands for any further arguments. For a rule that denies (`may_be`), a possible match is enough: options
    may be between the words and may be written in other ways, more arguments may follow, and words with unknown values
    may be anything. For a rule that allows (`is_surely`), the command has exactly the pattern's words in their places;
    only a `*` allows others.
    """

    text: str

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The pattern's words."""
        text = re.sub(r":\*$", " *", self.text.strip())
        return tuple(text.split())

    @cached_property
    def has_name(self) -> bool:
        """True if the program's name has no wildcard."""
        return not re.search(r"[*?\[]", self.words[0])

    def may_be(self, command: Command) -> bool:
        """Return whether the command may match."""
        if not command.program:
            return False
        if not self.has_name:
            whole = " ".join([command.program, *(word.text or word.prefix for word in command.args)]).casefold()
            pattern = " ".join(self.words).casefold()
            return not command.is_written_out or any(fnmatchcase(whole, each) for each in (pattern, f"{pattern} *"))
        head, *rest = (word.casefold() for word in self.words)
        if command.program.casefold() == head:
            flags = [word for word in rest if word.startswith("-") and word != "--"]
            places = [word for word in rest if word not in flags]
            if all(_has_flag(flag, command) for flag in flags) and _follow(places, command.args, command.is_open):
                return True
            return command.passes and self._is_mentioned(command.args)
        return command.passes and self._is_mentioned([Word(command.program, command.program), *command.args])

    def _is_mentioned(self, words: Sequence[Word]) -> bool:
        """Return whether the arguments contain all fixed words of the pattern.

        They are the arguments of a program that passes them to another program.
        """
        said = " ".join(word.text or word.prefix for word in words).casefold()
        fixed = [word.casefold() for word in self.words if not re.search(r"[*?\[]", word) and not word.startswith("-")]
        return all(re.search(rf"(?<![A-Za-z0-9_-]){re.escape(word)}(?![A-Za-z0-9_])", said) for word in fixed)

    def is_surely(self, command: Command) -> bool:
        """Return whether the command surely matches.

        If so, it has no effect that the pattern does not name.
        """
        if command.writes or command.is_open or not fnmatchcase(command.program, self.words[0]):
            return False
        rest = list(self.words[1:])
        has_more = rest[-1:] == [_REST]
        named = rest[:-1] if has_more else rest
        if len(command.args) < len(named) or (len(command.args) > len(named) and not has_more):
            return False
        for word, given in zip(named, command.args, strict=False):
            if given.text is None or given.many or not fnmatchcase(given.text, word):
                return False
        unsure = [place for place, _ in command.unsure if place >= len(named) or (place < 0 and not self.has_name)]
        return not unsure and all(place < len(named) for place in command.cautions)


def _follow(pattern: Sequence[str], args: Sequence[Word], is_open: bool) -> bool:
    """Return whether the arguments may start with the pattern's words.

    Options and their values may be between the words. An option may have a value or not, so there are many readings.
    They are tried from the end, each once.
    """
    whole, count = len(pattern), len(args)
    fits = [[True] * (count + 2) for _ in range(whole + 1)]  # [i][j]: args[j:] may begin with pattern[i:]
    for i in reversed(range(whole)):
        for j in reversed(range(count + 1)):
            if pattern[i] == _REST:
                fits[i][j] = i == whole - 1 or fits[i + 1][j] or (j < count and fits[i][j + 1])
            elif j == count:
                fits[i][j] = is_open
            elif args[j].many:
                fits[i][j] = True
            else:
                past = fits[i][j + 1] or (j + 1 < count and fits[i][j + 2])
                fits[i][j] = (_is(args[j], pattern[i]) and fits[i + 1][j + 1]) or (_may_be_option(args[j]) and past)
    return fits[0][0]


def _is(word: Word, pattern: str) -> bool:
    """Return whether a word may match the pattern's word."""
    if word.text is not None:
        return fnmatchcase(word.text.casefold(), pattern)
    return pattern.startswith(word.prefix.casefold()) or re.search(r"[*?\[]", pattern) is not None


def _may_be_option(word: Word) -> bool:
    return word.prefix.startswith("-") or (word.text is None and not word.prefix)


def _has_flag(flag: str, command: Command) -> bool:
    """Return whether a command may have an option.

    `-rf` stands for `-r -f`, and also for `--recursive --force`.
    """
    if command.is_open:
        return True
    given = [word.text for word in command.args if word.text is not None]
    if any(word.text is None and (not word.prefix or word.prefix.startswith("-")) for word in command.args):
        return True
    if flag.startswith("--"):
        name = flag.split("=")[0]
        long = [text.split("=")[0].casefold() for text in given if text.startswith("--") and len(text) > 2]
        return any(name.startswith(each) for each in long) or _has_letter(name[2], given)
    return all(_has_letter(letter, given) for letter in flag[1:])


def _has_letter(letter: str, given: Sequence[str]) -> bool:
    for text in given:
        if text.startswith("--"):
            if text[2:3].casefold() == letter:
                return True
        elif text.startswith("-") and letter in text[1:].casefold():
            return True
    return False
