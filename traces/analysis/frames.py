"""The user's own frames in a recorded traceback.

A traceback is text from another process, perhaps on another machine: its files are never opened.
"""

import re
from typing import NamedTuple

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+), in (?P<name>.*)$')
_LIBRARY = re.compile(r"^<|[/\\](?:site-packages|dist-packages|lib[/\\]python[\d.]+)[/\\]")
_REFOLD = re.compile(r"[/\\]refold[/\\](?:\w+\.py$|(?:cli|engine|tasks|testing|traces|view)[/\\])")
_MODULES = re.compile(r"[/\\]refold[/\\]modules[/\\]")
_EXAMPLES = re.compile(r"[/\\]refold[/\\]modules[/\\]examples[/\\]")


class TracebackFrame(NamedTuple):
    """One frame: file, line number, function, and lines of text."""

    file: str
    line: int
    name: str
    text: str


def own_frames(traceback: str) -> list[TracebackFrame]:
    """Return the frames in the user's own code, outermost first.

    These are the frames outside of refold and of installed libraries or, if there are none, in refold's examples. The
    list is empty if the traceback has neither.
    """
    frames = _frames(traceback)
    others = (_LIBRARY, _REFOLD, _MODULES)
    theirs = [frame for frame in frames if not any(each.search(frame.file) for each in others)]
    return theirs or [frame for frame in frames if _EXAMPLES.search(frame.file)]


def _frames(traceback: str) -> list[TracebackFrame]:
    """Return a traceback's frames in order: the last error's, in a chain."""
    frames: list[TracebackFrame] = []
    for line in traceback.splitlines():
        head = _FRAME.match(line)
        if head is not None:
            frames.append(TracebackFrame(head["file"], int(head["line"]), head["name"], line))
        elif line.startswith("    ") and frames:
            frames[-1] = frames[-1]._replace(text=f"{frames[-1].text}\n{line}")
        elif line.startswith("Traceback "):
            frames.clear()
    return frames
