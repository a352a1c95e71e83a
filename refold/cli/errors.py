"""What is said when a command can't do what it was asked: one line, what is wrong and what to do."""

import sys
import traceback as tb

from ..errors import UsageError
from .render.output import write_json
from .render.text import clean

BAD_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


class InputError(UsageError):
    """Something that was given on the command line can't be used; the message says what and what to do.

    `type` names what went wrong where that was somebody else's exception.
    """

    def __init__(self, message: str, type: str = "InputError") -> None:
        super().__init__(message)
        self.type = type


def tell(error: Exception, *, as_json: bool, traceback: bool, hint: str = "") -> int:
    """Says on stderr (as JSON on stdout) what an expected error is about; gives the exit code."""
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    message = one_line(text).replace("Value error, ", "")
    if hint:
        message = message.rstrip(". ") + hint
    if as_json:
        kind = error.type if isinstance(error, InputError) else type(error).__name__
        write_json({"error": {"type": kind, "message": message, "exit_code": BAD_INPUT}})
    else:
        print(f"refold: {message}", file=sys.stderr)
    if traceback:
        print(clean("".join(tb.format_exception(error.__cause__ or error)), lines=True), file=sys.stderr, end="")
    return BAD_INPUT


def usage_hint(error: Exception) -> str:
    """Where to read on after bad usage: the help of the command that was meant."""
    context = getattr(error, "ctx", None)
    return f"; see `{context.command_path if context is not None else 'refold'} --help`"


def one_line(text: str) -> str:
    """A message without line breaks, safe to print."""
    return clean("; ".join(line.strip() for line in text.splitlines() if line.strip()))
