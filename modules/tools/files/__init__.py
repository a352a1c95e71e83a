"""The tools that read, find and change files inside a workspace."""

from .edit_tools import EditError, edit_file, multiedit
from .grep_tool import grep
from .lines import delete_lines, insert_lines
from .list_tools import glob, ls
from .patch_format import PatchFormatError
from .patch_tool import apply_patch
from .paths.guarded import GuardedError
from .read_tools import read, write
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
