"""The words of a shell command line, read as bash reads them.

Only text whose meaning is certain without running anything is read; other text is refused with `Doubt`, because a rule
that denies must not rest on a guess. Parsers for editors guess, because they must accept every text.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

SPACE = " \t"
ENDS = " \t\n;&|<>()"
"""The characters that end an unquoted word."""

_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_CODE = re.compile(r"x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]", re.ASCII)
_BRACED = re.compile(
    r"\{#?[A-Za-z_]\w*(?:\[[@*0-9]+\])?(?:(?::?[-+=?]|##?|%%?|//?)[^$`{}\\'\"<>()|&;\n@\[\]]*|:[0-9: -]*)?\}",
    re.ASCII,
)
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ARITHMETIC = re.compile(r"\(\([\w\s+\-*/%<>=!&|?:]*\)\)", re.ASCII)


class Doubt(Exception):
    """The effect of a command line is uncertain; the text says why."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command.

    `text` is its value; None if only the running shell knows the value. `prefix` is the certain beginning of the value.
    `many` says that it may become several words, or none.
    """

    text: str | None
    prefix: str
    many: bool = False
    raw: str = ""

    @property
    def is_plain(self) -> bool:
        """True if the word has no quotes or escapes.

        Only such a word can be a reserved word.
        """
        return self.text is not None and self.raw == self.text


class WordReader:
    """Reads one word that starts at `at`.

    `commands` reads the contents of a `$(...)`, up to its end. `counted` are the variables with which the word
    calculates: bash evaluates their values as expressions, and runs the substitutions in these.
    """

    def __init__(self, source: str, at: int, commands: Callable[[int], int], inner: Callable[[str], None]) -> None:
        self.source = source
        self.at = at
        self.counted: set[str] = set()
        self._commands = commands
        self._inner = inner
        self._text: list[str] = []
        self._prefix: str | None = None
        self._many = False

    def read(self) -> tuple[Word, int]:
        """Return the word, and its end."""
        begin = self.at
        while self.at < len(self.source) and self.source[self.at] not in ENDS:
            self._piece(self.source[self.at])
            if self.source[self.at : self.at + 2] in ("<(", ">("):
                raise Doubt("a process is substituted in the middle of a word")
        joined = "".join(self._text)
        known = self._prefix is None
        text = joined if known else None
        return Word(text, joined if known else self._prefix or "", self._many, self.source[begin : self.at]), self.at

    def _piece(self, char: str) -> None:
        if char == "\\":
            following = self.source[self.at + 1 : self.at + 2]
            if not following:
                raise Doubt("the line ends in a backslash")
            if following == "\n":
                raise Doubt("a word goes on in the next line")
            self._text.append(following)
            self.at += 2
        elif char == "'":
            self._text.append(self._until_quote())
        elif char == '"':
            self.at += 1
            self._double()
        elif char == "$":
            self._dollar(quoted=False)
        elif char == "`":
            self._backticks(quoted=False)
        elif char == "[" and self._is_alone():
            self._text.append(char)
            self.at += 1
        elif char in "*?[":
            self._unknown(many=True)
            self._text.append(char)
            self.at += 1
        elif char == "{" and self.source[self.at : self.at + 2] != "{}":
            self._unknown(many=True)
            self.at += 1
        else:
            self._text.append(char)
            self.at += 1

    def _is_alone(self) -> bool:
        """Return whether the character here is a word by itself."""
        following = self.source[self.at + 1 : self.at + 2]
        return not self._text and self._prefix is None and (not following or following in ENDS)

    def _unknown(self, *, many: bool) -> None:
        """Record that only the shell knows the rest of the word."""
        if self._prefix is None:
            self._prefix = "".join(self._text)
        self._many = self._many or many

    def _until_quote(self) -> str:
        end = self.source.find("'", self.at + 1)
        if end < 0:
            raise Doubt("a quote is not closed")
        text = self.source[self.at + 1 : end]
        self.at = end + 1
        return text

    def _double(self) -> None:
        while True:
            char = self.source[self.at : self.at + 1]
            if not char:
                raise Doubt("a quote is not closed")
            if char == '"':
                self.at += 1
                return
            if char == "\\":
                following = self.source[self.at + 1 : self.at + 2]
                if following in ("$", "`", '"', "\\"):
                    self._text.append(following)
                elif following != "\n":
                    self._text.append(char + following)
                self.at += 2
            elif char == "$":
                self._dollar(quoted=True)
            elif char == "`":
                self._backticks(quoted=True)
            else:
                self._text.append(char)
                self.at += 1

    def _dollar(self, *, quoted: bool) -> None:
        rest = self.source[self.at + 1 : self.at + 3]
        if rest[:1] == "'" and not quoted:
            self.at += 1
            self._ansi()
        elif rest[:1] == '"' and not quoted:
            raise Doubt("a text is to be translated")
        elif rest == "((":
            if (found := _ARITHMETIC.match(self.source, self.at + 1)) is None:
                raise Doubt("it calculates with more than names and numbers")
            self.counted.update(_VARIABLE.findall(found[0]))
            self._unknown(many=not quoted)
            self.at = found.end()
        elif rest[:1] == "(":
            self._unknown(many=not quoted)
            self.at = self._commands(self.at + 2)
        elif rest[:1] == "{":
            if (found := _BRACED.match(self.source, self.at + 1)) is None:
                raise Doubt("a variable is expanded in an uncommon way")
            self._unknown(many=not quoted or "@" in found[0])
            self.at = found.end()
        elif rest[:1] == "[":
            raise Doubt("it calculates with $[...]")
        elif (found := _NAME.match(self.source, self.at + 1)) is not None:
            self._unknown(many=not quoted or found[0] == "@")
            self.at = found.end()
        else:
            self._text.append("$")
            self.at += 1

    def _backticks(self, *, quoted: bool) -> None:
        end = self.source.find("`", self.at + 1)
        inner = self.source[self.at + 1 : end]
        if end < 0 or "\\" in inner or (quoted and '"' in inner):
            raise Doubt("backticks are not closed, or nested")
        self._inner(inner)
        self._unknown(many=not quoted)
        self.at = end + 1

    def _ansi(self) -> None:
        """Read a `$'...'` with its escapes."""
        self.at += 1
        while (char := self.source[self.at : self.at + 1]) != "'":
            if not char:
                raise Doubt("a quote is not closed")
            if char != "\\":
                self._text.append(char)
                self.at += 1
                continue
            following = self.source[self.at + 1 : self.at + 2]
            if (code := _CODE.match(self.source, self.at + 1)) is not None:
                value = int(next(filter(None, code.groups()[:3]), "0"), 16) if code[4] is None else int(code[4], 8)
                if value == 0 or value > 127:
                    raise Doubt("a character is written as a code beyond ASCII")
                self._text.append(chr(value))
                self.at = code.end()
            elif following in _ANSI or following in ("\\", "'", '"', "?"):
                self._text.append(_ANSI.get(following, following))
                self.at += 2
            else:
                raise Doubt("a character is escaped in an uncommon way")
        self.at += 1
