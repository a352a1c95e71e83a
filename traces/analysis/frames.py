"""The user's own frames in a recorded traceback.

A traceback is text of another process, perhaps of another machine: nothing is looked up on the disk.
"""

import re
from typing import NamedTuple

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+), in (?P<name>.*)$')
_LIBRARY = re.compile(r"^<|[/\\](?:site-packages|dist-packages|lib[/\\]python[\d.]+)[/\\]")
_REFOLD = re.compile(r"[/\\]refold[/\\](?:\w+\.py$|(?:cli|engine|errors|tasks|testing|traces|view)[/\\])")
_MODULES = re.compile(r"[/\\]refold[/\\]modules[/\\]")


class Frame(NamedTuple):
    """One frame of a traceback.

    It has the file, the line's number, the function, and the frame's lines of text.
    """

    file: str
    line: int
    name: str
    text: str


def own_frames(traceback: str) -> list[Frame]:
    """Return the frames in the user's own code.

    The one that raised is the last. These are the frames outside of refold and of installed libraries. If there are
    none, the frames in refold's modules
    count: the run may be one of an example. Returns an empty list if the traceback has neither.
    """
    frames = _frames(traceback)
    others = (_LIBRARY, _REFOLD, _MODULES)
    theirs = [frame for frame in frames if not any(each.search(frame.file) for each in others)]
    return theirs or [frame for frame in frames if _MODULES.search(frame.file)]


def _frames(traceback: str) -> list[Frame]:
    """Return the frames of a traceback in their order.

    Of a chain of errors, they are those of the last one.
    """
    found: list[Frame] = []
    for line in traceback.splitlines():
        head = _FRAME.match(line)
        if head is not None:
            found.append(Frame(head["file"], int(head["line"]), head["name"], line))
        elif line.startswith("    ") and found:
            found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{line}")
        elif line.startswith("Traceback "):
            found.clear()
    return found
