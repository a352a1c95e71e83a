"""A sandbox of Linux namespaces, made by bubblewrap.

It has no network, a read-only root, and its own /tmp and processes.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from io import BufferedRandom
from pathlib import Path

from ....tasks.processes.commands import child_env
from ..files.workspace import Workspace
from .command import Start
from .guarded_files import Guard, guarded
from .hidden_paths import FOLDERS, hidden_paths
from .limits import Limits, Wall
from .local import LocalSandbox
from .unavailable import SandboxUnavailableError


class BubblewrapSandbox(LocalSandbox):
    """Runs commands with only the workspace and /tmp writable.

    /tmp and home are empty. Needs Debian's package `bubblewrap`, and user namespaces or root. Raises
    SandboxUnavailableError for the workspace `/`, because it would leave all files writable.

    Args:
        workspace: The commands' folder. Its parts that others run as code (`.git`, this Python's environment) are
            read-only, unless the workspace is not guarded: `Workspace(root, guard=False)`.
        limits: The limits of each command.
        show: Hidden paths to make visible, read-only: a socket, or a folder of home.
    """

    name = "bubblewrap"
    walls: frozenset[Wall] = frozenset({"network", "files", "processes", "tmp"})

    def __init__(
        self, workspace: Workspace | str | Path, limits: Limits | None = None, *, show: Sequence[str | Path] = ()
    ) -> None:
        super().__init__(workspace, limits)
        if isinstance(show, str):
            raise TypeError(f"show must be a list of paths, got the text {show!r}")
        self.show = [os.path.realpath(os.path.expanduser(each)) for each in show]
        if self.workspace.root == Path("/"):
            why = "the workspace is /, so all files could be written; name a folder as the workspace"
            raise SandboxUnavailableError(self.name, why)

    @staticmethod
    def unavailable() -> str | None:
        """Return why bubblewrap does not work here, or None; tested once."""
        return _tried()

    @contextmanager
    def _prepared(self, argv: list[str], folder: Path, env: dict[str, str]) -> Iterator[Start]:
        variables = child_env(env) | {"HOME": env.get("HOME", "/tmp"), "TMPDIR": env.get("TMPDIR", "/tmp")}
        sets = [part for name, value in variables.items() for part in ("--setenv", name, value)]
        with guarded(self.workspace) as guards, _memory("options") as file, _memory("info") as info:
            options = [*_ISOLATED, *self._mounts(guards.mounts), "--chdir", str(folder), "--clearenv", *sets]
            file.write(b"".join(os.fsencode(each) + b"\0" for each in options))
            file.seek(0)
            # options go through a file: other users can read the command line
            wrapper = ["bwrap", "--args", str(file.fileno()), "--json-status-fd", str(info.fileno()), "--"]
            yield Start(
                [*wrapper, *argv],
                child_env(None),
                pass_fds=[file.fileno(), info.fileno()],
                processes=self.limits.processes,
                wrappers=lambda: _init(info),
                began=lambda done: "exit-code" in _status(info) or not done.output.startswith("bwrap: "),
                notes=guards.notes,
            )

    def _mounts(self, guards: Iterable[Guard]) -> list[str]:
        """Return the mounts of the root, the workspace and other paths.

        The root is read-only. Hidden and guarded paths are mounted over the root and the workspace.
        """
        root = str(self.workspace.root)
        hidden = hidden_paths(os.environ, self.workspace.root) - set(self.show) - {root}
        inside = {each for each in hidden if each.startswith(f"{root}/")}  # the workspace is mounted over these
        outside = _outermost(hidden - inside)
        shown = [part for each in self.show for part in ("--ro-bind", each, each)]
        binds = [*_ROOT, *_hidden(outside), *_OWN, *_python(outside), "--bind", root, root]
        binds += [*_hidden(_outermost(inside)), *_python(inside), *shown]
        for each in guards:
            binds += ["--bind" if each.writable else "--ro-bind", str(each.path), str(each.path)]
        return binds


# No --die-with-parent: the supervisor kills all processes and tells the model how many the command left behind.
_ISOLATED = ("--unshare-all", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")
_ROOT = ("--ro-bind", "/", "/")
_OWN = ("--dev", "/dev", "--proc", "/proc")


def _memory(name: str) -> BufferedRandom:
    """Return a nameless file whose descriptor a child may inherit."""
    return open(os.memfd_create(f"refold-{name}"), "w+b")


def _init(info: BufferedRandom) -> list[int]:
    """Return the arguments for process 1 inside the sandbox.

    It may end slightly later than bubblewrap and the command.
    """
    pid = _status(info).get("child-pid")
    return [] if pid is None else [pid]


def _status(info: BufferedRandom) -> dict[str, int]:
    """Return bubblewrap's reports: its child, and the exit code.

    The exit code is present only if the command has started.
    """
    info.seek(0)
    return {name: value for line in info.read().splitlines() for name, value in json.loads(line).items()}


def _outermost(paths: set[str]) -> list[str]:
    """Return the paths that are not below another one."""
    return sorted(each for each in paths if not any(str(above) in paths for above in Path(each).parents))


def _hidden(paths: Iterable[str]) -> list[str]:
    """Return mounts that hide paths.

    Folders are empty, files cannot be opened, and sockets cannot be connected to.
    """
    found: list[str] = []
    for each in paths:
        found += ["--tmpfs", each] if os.path.isdir(each) else ["--ro-bind", "/dev/null", each]
    return found


def _python(hidden: Iterable[str]) -> list[str]:
    """Return mounts for this Python's folders inside hidden ones."""
    folders = dict.fromkeys(os.path.realpath(each) for each in (sys.prefix, sys.base_prefix, sys.exec_prefix))
    folders |= dict.fromkeys(os.path.abspath(each) for each in (sys.prefix, sys.base_prefix))
    seen = [folder for folder in folders if folder.startswith(tuple(f"{each}/" for each in hidden))]
    return [part for each in seen for part in ("--ro-bind", each, each)]


@lru_cache(maxsize=1)
def _tried() -> str | None:
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (the program bwrap); on Debian: apt-get install bubblewrap"
    walls = [*_ISOLATED, *_ROOT, *_hidden(each for each in FOLDERS if os.path.isdir(each)), *_OWN]
    try:
        tried = subprocess.run(["bwrap", *walls, "--", "true"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {error}"
    return None if tried.returncode == 0 else f"bubblewrap has no namespaces here: {tried.stderr.strip()}"
