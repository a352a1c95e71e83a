"""Reads a chat's lines, with history and editing at a terminal."""

import contextlib
import sys
from collections.abc import Iterable

from ...render.output import can_ask
from ...render.text import clean

PROMPT = "> "


class ChatLines:
    """The lines of a chat; at a terminal, Tab completes `words`."""

    def __init__(self, words: Iterable[str] = (), visible: bool = True) -> None:
        self.interactive = can_ask()
        self._visible = visible
        self._words = sorted(words)
        if self.interactive:
            self._prepare()

    def next(self, label: str = "") -> str:
        r"""Return the next line, with `label` in the prompt.

        A line that ends in a backslash continues on the next one. Raises `EOFError` if there are no more lines.
        """
        parts = [self._line(f"{label}{PROMPT}")]
        while parts[-1].endswith("\\"):
            parts[-1] = parts[-1][:-1]
            try:
                parts.append(self._line("  "))
            except EOFError:
                break
        return "\n".join(parts).strip()

    def _line(self, prompt: str) -> str:
        if self.interactive:
            return input(prompt)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        line = line.rstrip("\r\n")
        if self._visible and line.strip():
            print(f"{prompt}{clean(line)}", flush=True)
        return line

    def _prepare(self) -> None:
        """Turn on editing, history and completion, if this Python has readline."""
        with contextlib.suppress(ImportError):
            import readline

            readline.set_completer(self._complete)
            readline.set_completer_delims(" ")
            readline.parse_and_bind("tab: complete")

    def _complete(self, text: str, state: int) -> str | None:
        fitting = [word for word in self._words if text and word.startswith(text)]
        return fitting[state] if state < len(fitting) else None
