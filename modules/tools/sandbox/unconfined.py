"""What takes the place of a sandbox where none is available."""

from pathlib import Path

from ..files.workspace import Workspace
from .limits import Limits
from .local import LocalSandbox
from .unavailable import warn_once


class UnconfinedSandbox(LocalSandbox):
    """Runs commands without walls.

    Each command of a model needs a rule or a user's approval.

    Args:
        workspace: The commands' folder.
        limits: The limits of each command.
        why: Why no sandbox is available, and how to get one.
    """

    name = "unconfined"

    def __init__(self, workspace: Workspace | str | Path, limits: Limits | None = None, *, why: str) -> None:
        super().__init__(workspace, limits)
        self.why = why
        warn_once(
            f"No sandbox is available: {why}. refold asks about each command. To run them without a sandbox, use "
            "use_sandbox('local') or --sandbox local."
        )
