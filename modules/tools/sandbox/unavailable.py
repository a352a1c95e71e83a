"""The error of an unavailable sandbox."""

from ....errors import ExternalError


class SandboxUnavailableError(ExternalError, RuntimeError):
    """A sandbox is unknown or unavailable on this machine.

    `name` is its name; the message has the reason.
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"there is no sandbox {name!r} here: {why}")
        self.name = name
        self.why = why
