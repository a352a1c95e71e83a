"""The simple commands of a shell command line.

They include commands in pipes, loops, subshells and substitutions.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .text import ShellText
from .words import Doubt, Word, WordReader

MOST_CHARACTERS = 20_000
_DEEPEST = 30
_REDIRECTS = frozenset({"<<<", "<<-", "<<", "&>>", ">>", "<&", ">&", "<>", ">|", "&>", "<", ">"})
_ASSIGNS = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[", re.ASCII)
_UNREAD = frozenset({"case", "select", "function", "coproc", "((", "esac"})
_CLOSERS = frozenset({"then", "elif", "else", "fi", "do", "done", "}"})
_CONDITION = re.compile(r"\[\[(?:[\w\s./=!*?~^+:,@%&|<>\"-]|\$\w|\$\{\w+\})*\s\]\](?=[\s;&|)]|$)", re.ASCII)
_NUMBER = re.compile(r"[0-9]+(?=[<>])")
_EVALUATES = re.compile(r"\s-(?:eq|ne|lt|le|gt|ge|v|R)\s")
_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\xa0\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]")


@dataclass(slots=True)
class Simple:
    """One simple command.

    Attributes:
        sets: the variables that it sets, with their values.
        words: its words.
        writes: the targets of its output.
        counted: the variables with which it calculates.
        is_fed: whether its stdin comes from elsewhere.
        stdin: the text of its stdin, if it is in the line.
        inputs: how often its stdin is redirected.
    """

    sets: list[tuple[str, Word]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    writes: list[Word] = field(default_factory=list)
    counted: set[str] = field(default_factory=set)
    is_fed: bool = False
    stdin: str | None = None
    inputs: int = 0


def read_line(source: str, *, is_fed: bool = False, depth: int = 0) -> list[Simple]:
    """Return the simple commands of a command line, in their order.

    Raises Doubt. `is_fed` says that the whole line gets a stdin.
    """
    if len(source) > MOST_CHARACTERS or depth > _DEEPEST:
        raise Doubt("it is too long, or nested too deeply")
    if (odd := _ODD.search(source)) is not None:
        raise Doubt(f"it holds the character U+{ord(odd[0]):04X}")
    reader = _Reader(source, depth)
    reader.fed = is_fed
    reader.commands(())
    reader.skip()
    reader.close()
    if reader.at < len(source):
        raise Doubt(f"{source[reader.at : reader.at + 10]!r} stands where no command can")
    return reader.found


class _Reader(ShellText):
    def __init__(self, source: str, depth: int) -> None:
        super().__init__(source)
        self.depth = depth
        self.fed = False
        self.found: list[Simple] = []
        self._counted: set[str] = set()

    def close(self) -> None:
        """Keep the parts that no command has taken."""
        if self._counted:
            self.found.append(Simple(counted=self._counted))

    def _word(self) -> Word:
        if self.source[self.at : self.at + 2] in ("<(", ">("):
            begin = self.at
            self.at = self._substituted(self.at + 2)
            return Word(None, "/dev/fd/", False, self.source[begin : self.at])
        reader = WordReader(self.source, self.at, self._substituted, self._inner)
        word, self.at = reader.read()
        self._counted |= reader.counted
        if not word.raw:
            raise Doubt(f"{self.source[self.at : self.at + 10]!r} stands where a word should")
        return word

    def _substituted(self, at: int) -> int:
        """Read a `$(...)` from `at` on; return its end."""
        inner = _Reader(self.source, self.depth + 1)
        inner.at, inner.fed = at, self.fed
        inner.commands((")",))
        inner._expect(")")
        inner.close()
        self.found += inner.found
        return inner.at

    def _inner(self, source: str) -> None:
        self.found += read_line(source, is_fed=self.fed, depth=self.depth + 1)

    def commands(self, ends: Sequence[str]) -> None:
        """Read a list of commands.

        The list ends at one of these words or operators, or at the end of the line.
        """
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Doubt("it is nested too deeply")
        while True:
            self.skip(newlines=True)
            if self.at >= len(self.source) or self.operator() == ")" or self.peek() in ends:
                break
            if self.peek() in _CLOSERS:
                raise Doubt(f"{self.peek()!r} closes nothing")
            self._pipeline()
            self.skip()
            operator = self.operator()
            if operator in ("&&", "||", ";", "&", "\n"):
                if operator == "\n":
                    self.newline()
                else:
                    self.at += len(operator)
            elif operator not in ("", ")"):
                raise Doubt(f"{operator!r} stands where no command ends")
        if self.heredocs:
            raise Doubt("a here-document is not closed")
        self.depth -= 1

    def _pipeline(self) -> None:
        before = self.fed
        while True:
            self.skip()
            if self.peek() == "!":
                self.at += 1
                continue
            self._command()
            self.skip()
            if self.operator() not in ("|", "|&"):
                break
            self.at += len(self.operator())
            self.skip(newlines=True)
            self.fed = True
        self.fed = before

    def _command(self) -> None:
        self.skip()
        word, begin = self.peek(), len(self.found)
        if self.operator() == "(":
            if self.source.startswith("((", self.at):
                raise Doubt("it calculates with ((...))")
            self.at += 1
            self.commands((")",))
            self._expect(")")
        elif word in _UNREAD:
            raise Doubt(f"it holds {word!r}")
        elif word == "{":
            self._past("{")
            self.commands(("}",))
            self._past("}")
        elif word == "if":
            self._if()
        elif word in ("while", "until"):
            self._past(word)
            self.commands(("do",))
            self._do()
        elif word == "for":
            self._for()
        elif word == "[[":
            condition = _CONDITION.match(self.source, self.at)
            if condition is None:
                raise Doubt("a condition in [[...]] holds more than names and texts")
            if _EVALUATES.search(condition[0]):
                raise Doubt("a condition in [[...]] calculates")
            self.at = condition.end()
        else:
            self._simple()
            return
        compound = Simple()
        self._redirects(compound)
        for one in self.found[begin:]:
            one.is_fed = one.is_fed or compound.is_fed
        self.found.append(compound)

    def _if(self) -> None:
        self._past("if")
        self.commands(("then",))
        self._past("then")
        while True:
            self.commands(("elif", "else", "fi"))
            word = self.peek()
            if word == "elif":
                self._past("elif")
                self.commands(("then",))
                self._past("then")
            elif word == "else":
                self._past("else")
                self.commands(("fi",))
            else:
                self._past("fi")
                return

    def _for(self) -> None:
        self._past("for")
        self.skip()
        if not re.fullmatch(r"[A-Za-z_]\w*", name := self.peek()):
            raise Doubt("a loop that counts, or has no name")
        self._past(name)
        loop = Simple(sets=[(name, Word(None, ""))])
        self.skip(newlines=True)
        if self.peek() == "in":
            self._past("in")
            self.skip()
            while not self.operator() and self.at < len(self.source):
                loop.sets.append((name, self._word()))
                self.skip()
        self.found.append(loop)
        self.skip()
        if self.operator() in (";", "\n"):
            self.at += 1
        self.skip(newlines=True)
        self._do()

    def _do(self) -> None:
        self._past("do")
        self.commands(("done",))
        self._past("done")

    def _past(self, word: str) -> None:
        self.skip(newlines=True)
        if self.peek() != word:
            raise Doubt(f"{word!r} is missing")
        self.at += len(word)

    def _expect(self, operator: str) -> None:
        self.skip(newlines=True)
        if not self.source.startswith(operator, self.at):
            raise Doubt(f"{operator!r} is missing")
        self.at += len(operator)

    def _simple(self) -> None:
        one = Simple(is_fed=self.fed)
        place, is_empty = len(self.found), True
        while True:
            self.skip()
            if self.at >= len(self.source):
                break
            if self._redirect(one):
                is_empty = False
                continue
            operator = self.operator()
            if operator == "(":
                raise Doubt("a function or a list is defined")
            if operator:
                break
            self._add(one, self._word())
        if is_empty and not (one.words or one.sets):
            raise Doubt("there is no command where one should be")
        self.found.insert(place, one)
        one.counted, self._counted = self._counted, set()

    def _add(self, one: Simple, word: Word) -> None:
        head = _ASSIGNS.match(word.raw)
        if not one.words and head is not None:
            name = head[0].rstrip("+=")
            text = None if word.text is None else word.text[len(head[0]) :]
            one.sets.append((name, Word(text, word.prefix[len(head[0]) :], word.many, word.raw)))
        elif not one.words and _SUBSCRIPT.match(word.raw):
            raise Doubt("a list is changed")
        else:
            one.words.append(word)

    def _redirects(self, one: Simple) -> None:
        self.skip()
        while self._redirect(one):
            self.skip()

    def _redirect(self, one: Simple) -> bool:
        """Read a redirection; return whether there was one here."""
        number = _NUMBER.match(self.source, self.at)
        begin = self.at
        if number is not None:
            self.at = number.end()
        operator = self.operator()
        if operator not in _REDIRECTS:
            self.at = begin
            if number is not None:
                raise Doubt("a number stands before what is substituted")
            return False
        self.at += len(operator)
        self.skip()
        is_stdin = operator[0] == "<" and (number is None or int(number[0]) == 0)
        if operator in ("<<", "<<-"):
            word = self._word()
            quoted = not word.is_plain
            if word.text is None:
                raise Doubt("the end of a here-document is not written out")
            one.inputs += is_stdin
            place = one.inputs

            def given(text: str) -> None:
                if is_stdin and one.inputs == place:  # unless a later redirection has replaced this one
                    one.stdin = text if quoted or not re.search(r"[$\\]", text) else None

            self.heredocs.append((word.text, operator == "<<-", quoted, given))
            one.is_fed = True
            return True
        target = self._word()
        if operator in ("<", "<<<", "<>"):
            one.is_fed = one.is_fed or target.text != "/dev/null"
            one.inputs += is_stdin
            one.stdin = target.text if operator == "<<<" and is_stdin else None
        if operator in ("<&",) or (operator == ">&" and re.fullmatch(r"[0-9]+-?|-", target.text or "")):
            one.is_fed = one.is_fed or operator == "<&"
            one.inputs += is_stdin
            one.stdin = None
        elif operator != "<" and operator != "<<<":
            one.writes.append(target)
        return True
