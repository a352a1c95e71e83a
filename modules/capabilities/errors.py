"""The error of a capability that cannot be loaded at all.

A missing part is only reported in the capability's health.
"""

from pathlib import Path

from ...traces.errors import DefinitionError


class CapabilityError(DefinitionError, ValueError):
    """A folder is not a valid capability.

    `path` is the file or folder that was read, and `problems` are all problems found.
    """

    def __init__(self, path: Path, *problems: str) -> None:
        super().__init__(f"{path}: {'; '.join(problems)}")
        self.path = path
        self.problems = problems
