"""The text of a shell command line as its grammar sees it.

It has blanks, comments, here-documents, operators and plain words.
"""

import re
from collections.abc import Callable

from .words import SPACE, Doubt

_OPERATORS = ("<<<", "<<-", "&>>", "&&", "||", "|&", ";;", "<<", ">>", "<&", ">&", "<>", ">|", "&>")
_PLAIN = re.compile(r"[^\s;&|<>()'\"\\$`]*")


class ShellText:
    """A text and the current position.

    `heredocs` are the here-documents that begin with the next line. Each has its last line, whether leading tabs are
    ignored there, whether its text is literal, and the function that receives the text.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.heredocs: list[tuple[str, bool, bool, Callable[[str], None]]] = []

    def skip(self, *, newlines: bool = False) -> None:
        """Skip blanks, comments and joined lines."""
        while self.at < len(self.source):
            char = self.source[self.at]
            if char in SPACE:
                self.at += 1
            elif self.source.startswith("\\\n", self.at):
                self.at += 2
            elif char == "#":
                end = self.source.find("\n", self.at)
                self.at = len(self.source) if end < 0 else end
            elif char == "\n" and newlines:
                self.newline()
            else:
                return

    def newline(self) -> None:
        """Skip the end of a line, and the here-documents that begin there."""
        self.at += 1
        for delimiter, dashed, quoted, given in self.heredocs:
            given(self._heredoc(delimiter, dashed, quoted))
        self.heredocs = []

    def _heredoc(self, delimiter: str, dashed: bool, quoted: bool) -> str:
        body: list[str] = []
        while True:
            if self.at >= len(self.source):
                raise Doubt("a here-document is not closed")
            end = self.source.find("\n", self.at)
            line = self.source[self.at :] if end < 0 else self.source[self.at : end]
            self.at = len(self.source) if end < 0 else end + 1
            if (line.lstrip("\t") if dashed else line) == delimiter:
                break
            body.append(line.lstrip("\t") if dashed else line)
        text = "\n".join(body)
        if not quoted and ("`" in text or re.search(r"\$[({\[]", text) or "\\\n" in text):
            raise Doubt("commands are substituted in a here-document")
        return text

    def operator(self) -> str:
        """Return the operator here, or ""."""
        if self.source[self.at : self.at + 2] in ("<(", ">("):
            return ""
        for operator in _OPERATORS:
            if self.source.startswith(operator, self.at):
                return operator
        char = self.source[self.at : self.at + 1]
        return char if char and char in ";&|<>()\n" else ""

    def peek(self) -> str:
        """Return the plain word here without skipping it, or ""."""
        end = _PLAIN.match(self.source, self.at)
        assert end is not None
        following = self.source[end.end() : end.end() + 1]
        return end[0] if following == "" or following in " \t\n;&|<>()" else ""
