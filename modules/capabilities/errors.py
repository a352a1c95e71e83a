"""A capability that cannot be loaded at all.

If only a part of it is missing, its health says so.
"""

from pathlib import Path

from ...errors import DefinitionError


class CapabilityError(DefinitionError, ValueError):
    """A folder that is no capability.

    `path` is what was read, `problems` are all that was found.
    """

    def __init__(self, path: Path, *problems: str) -> None:
        super().__init__(f"{path}: {'; '.join(problems)}")
        self.path = path
        self.problems = problems
