"""Reads single keys, and restores the terminal in every case."""

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator

ReadKey = Callable[[float], str | None]
"""A function that waits up to so many seconds for a key; it returns a character, a name below, or None for no key."""

_NAMES = {
    "\r": "enter", "\n": "enter", " ": "space", "\x7f": "backspace", "\x08": "backspace",
    "\x1b": "escape", "\x03": "ctrl-c", "\x04": "ctrl-d", "\x1a": "ctrl-z",
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left", "\x1b[H": "home", "\x1b[F": "end",
    "\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left", "\x1bOH": "home", "\x1bOF": "end",
    "\x1b[1~": "home", "\x1b[4~": "end", "\x1b[7~": "home", "\x1b[8~": "end",
    "\x1b[5~": "pageup", "\x1b[6~": "pagedown",
}  # fmt: skip
_KEY = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|O[A-Za-z])|.", re.DOTALL)
_UNFINISHED = re.compile("\x1b(?:\\[[0-?]*[ -/]*|O)?$")
_WINDOWS = {"H": "up", "P": "down", "M": "right", "K": "left", "G": "home", "O": "end", "I": "pageup", "Q": "pagedown"}


def split_keys(text: str) -> tuple[list[str], str]:
    """Split terminal input into key names and an incomplete rest."""
    rest = _UNFINISHED.search(text)
    whole = text[: rest.start()] if rest else text
    return [_NAMES.get(key, key) for key in _KEY.findall(whole)], rest[0] if rest else ""


if sys.platform == "win32":
    import msvcrt

    @contextlib.contextmanager
    def keyboard() -> Iterator[ReadKey]:
        """Yield a function that reads keys."""

        def read(timeout: float) -> str | None:
            until = time.monotonic() + timeout
            while not msvcrt.kbhit():
                if time.monotonic() >= until:
                    return None
                time.sleep(0.02)
            key = msvcrt.getwch()
            return _WINDOWS.get(msvcrt.getwch(), "") if key in ("\x00", "\xe0") else _NAMES.get(key, key)

        yield read

else:
    import select
    import signal
    import termios
    import tty
    from types import FrameType

    @contextlib.contextmanager
    def keyboard() -> Iterator[ReadKey]:
        """Yield a function that reads keys.

        The terminal's mode is restored at the end, also on SIGTERM. Ctrl-C and Ctrl-Z arrive as keys: within the block,
        the terminal sends no signals for them.
        """
        fd = sys.stdin.fileno()
        before = termios.tcgetattr(fd)
        waiting: list[str] = []
        rest = ""

        def read(timeout: float) -> str | None:
            nonlocal rest
            if not waiting:
                until = time.monotonic() + timeout
                while select.select([fd], [], [], 0.05 if rest else max(0.0, until - time.monotonic()))[0]:
                    data = os.read(fd, 1024)
                    if not data:
                        return "ctrl-d"
                    keys, rest = split_keys(rest + data.decode("utf-8", "replace"))
                    waiting.extend(keys)
                    if waiting:
                        break
                else:
                    if rest:  # nothing followed within 0.05 s: a single press of the escape key, not a sequence
                        waiting.extend(_NAMES.get(key, key) for key in rest)
                        rest = ""
            return waiting.pop(0) if waiting else None

        def ended(number: int, frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        handler = signal.signal(signal.SIGTERM, ended)
        try:
            _enter_key_mode(fd)
            yield read
        finally:
            termios.tcsetattr(fd, termios.TCSADRAIN, before)
            signal.signal(signal.SIGTERM, handler)

    def _enter_key_mode(fd: int) -> None:
        """Make the terminal deliver each key at once, without echo or signals."""
        tty.setcbreak(fd)
        mode = termios.tcgetattr(fd)
        mode[3] &= ~termios.ISIG
        termios.tcsetattr(fd, termios.TCSADRAIN, mode)


def stop_process() -> None:
    """Stop the process group until the shell resumes it, as Ctrl-Z does."""
    if sys.platform != "win32":
        os.kill(0, signal.SIGTSTP)
