"""The sandbox made of Linux namespaces by bubblewrap: no network, a read-only root, its own /tmp and processes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ....tasks.processes import child_env
from ..files.workspace import Workspace
from .limits import Limits, Wall
from .local import LocalSandbox
from .unavailable import SandboxUnavailableError

_HIDDEN = ("/tmp", "/var/tmp", "/run", "/root", "/home")
"""Folders that commands see empty, as other people's files and sockets are there."""


class BubblewrapSandbox(LocalSandbox):
    """Runs commands behind walls: nothing but the workspace and /tmp can be written, /tmp and home are empty.

    Needs Debian's package `bubblewrap`, and user namespaces or root. Raises SandboxUnavailableError for the workspace
    `/`, as it would leave no walls around files.
    """

    name = "bubblewrap"
    walls: frozenset[Wall] = frozenset({"network", "files", "processes", "tmp"})

    def __init__(self, workspace: Workspace | str | Path, limits: Limits | None = None) -> None:
        super().__init__(workspace, limits)
        if self.workspace.root == Path("/"):
            why = "the workspace is /, so that all files could be written; name a folder as the workspace"
            raise SandboxUnavailableError(self.name, why)

    @staticmethod
    def unavailable() -> str | None:
        """Why bubblewrap does not work here; None where it does. It is tried once."""
        return _tried()

    def _command(self, argv: list[str], folder: Path, env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        root = str(self.workspace.root)
        variables = child_env(env) | {"HOME": env.get("HOME", "/tmp"), "TMPDIR": env.get("TMPDIR", "/tmp")}
        sets = [part for name, value in variables.items() for part in ("--setenv", name, value)]
        inside = [each for each in _HIDDEN if each.startswith(f"{root}/")]  # the workspace is bound over them
        binds = [*_walls(), *_python(_HIDDEN), "--bind", root, root, *_hidden(inside), *_python(inside)]
        wrapper = [*binds, "--chdir", str(folder), "--clearenv", *sets, "--"]
        return [*wrapper, *argv], child_env(None)


def _hidden(folders: Sequence[str]) -> list[str]:
    return [part for each in folders if os.path.isdir(each) for part in ("--tmpfs", each)]


def _walls() -> list[str]:
    isolated = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"]
    return ["bwrap", *isolated, "--ro-bind", "/", "/", *_hidden(_HIDDEN), "--dev", "/dev", "--proc", "/proc"]


def _python(hidden: Sequence[str]) -> list[str]:
    """This Python's folders, where they are in one that is hidden."""
    folders = dict.fromkeys(os.path.realpath(each) for each in (sys.prefix, sys.base_prefix, sys.exec_prefix))
    folders |= dict.fromkeys(os.path.abspath(each) for each in (sys.prefix, sys.base_prefix))
    seen = [folder for folder in folders if folder.startswith(tuple(f"{each}/" for each in hidden))]
    return [part for each in seen for part in ("--ro-bind", each, each)]


@lru_cache(maxsize=1)
def _tried() -> str | None:
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (the program bwrap); on Debian: apt-get install bubblewrap"
    try:
        tried = subprocess.run([*_walls(), "--", "true"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {error}"
    return None if tried.returncode == 0 else f"bubblewrap has no namespaces here: {tried.stderr.strip()}"
