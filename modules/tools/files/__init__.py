"""The tools that read, find and change files inside a workspace."""

from .editing import EditError, edit_file, multiedit
from .guarded import GuardedError
from .lines import delete_lines, insert_lines
from .listing import glob, ls
from .patch_format import PatchFormatError
from .patching import apply_patch
from .reading import read, write
from .searching import grep
from .text import NotTextError
from .workspace import Workspace, current_workspace, use_workspace

__all__ = [
    "EditError",
    "GuardedError",
    "NotTextError",
    "PatchFormatError",
    "Workspace",
    "apply_patch",
    "current_workspace",
    "delete_lines",
    "edit_file",
    "glob",
    "grep",
    "insert_lines",
    "ls",
    "multiedit",
    "read",
    "use_workspace",
    "write",
]
