"""The keys of a replay, as a state machine without a terminal."""

from dataclasses import dataclass

from .pages import Pages

HELP = "n next  b back  g go to  home/end  ↑↓ scroll  f full  s state  ? keys  q quit"
KEYS = "n, space, →: next   b, ←: back   g: go to a step   s: the whole state after it, or what it changed   q: quit"
_NEXT = ("n", "space", "right", "enter")
_BACK = ("b", "left", "backspace", "p")
_SCROLL = {"up": -1, "k": -1, "down": 1, "j": 1}


@dataclass
class Stepper:
    """The place in a replay, and how its page is shown."""

    pages: Pages
    page: int = 0
    offset: int = 0
    full: bool = False
    state: bool = False
    """True if a step's page shows the whole state after the step instead of the step itself."""
    typed: str | None = None
    message: str = ""
    done: bool = False

    def press(self, key: str, height: int = 20) -> None:
        """Handle a key, on a screen of `height` lines."""
        self.message = ""
        if self.typed is not None:
            self._type(key)
        elif key in ("q", "ctrl-d"):
            self.done = True
        elif key in _NEXT:
            self._go(self.page + 1, "this is the end")
        elif key in _BACK:
            self._go(self.page - 1, "this is the beginning")
        elif key == "home":
            self._go(0)
        elif key == "end":
            self._go(len(self.pages) - 1)
        elif key == "g":
            self.typed = ""
        elif key == "f":
            self.full = not self.full
            self.offset = 0
        elif key == "s":
            self.state = not self.state
            self.offset = 0
        elif key == "?":
            self.message = KEYS
        elif key in _SCROLL:
            self.offset = max(0, self.offset + _SCROLL[key])
        elif key in ("pageup", "pagedown"):
            self.offset = max(0, self.offset + (height if key == "pagedown" else -height))

    def footer(self) -> str:
        """Return the last line: the typed number, a message, or the keys."""
        if self.typed is not None:
            return f"go to step: {self.typed}_"
        return self.message or HELP

    def _type(self, key: str) -> None:
        assert self.typed is not None
        if key.isdecimal() and key.isascii() and len(self.typed) < 9:
            self.typed += key
        elif key == "backspace":
            self.typed = self.typed[:-1]
        elif key == "enter":
            typed, self.typed = self.typed, None
            if typed:
                self._seek(int(typed))
        elif key in ("escape", "q", "g"):
            self.typed = None

    def _seek(self, step: int) -> None:
        if step < self.pages.shown_steps:
            self._go(step + 1)
        elif self.pages.shown_steps:
            self.message = f"there is no step {step}; the last one is {self.pages.shown_steps - 1}"
        else:
            self.message = "the run has no steps"

    def _go(self, page: int, refused: str = "") -> None:
        if 0 <= page < len(self.pages):
            self.page, self.offset = page, 0
        else:
            self.message = refused
