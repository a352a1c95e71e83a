"""The error of a sandbox that cannot be had."""

from ....errors import ExternalError


class SandboxUnavailableError(ExternalError, RuntimeError):
    """A sandbox that is not known, or that cannot be had on this machine; `name` is the one, the message says why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"there is no sandbox {name!r} here: {why}")
        self.name = name
