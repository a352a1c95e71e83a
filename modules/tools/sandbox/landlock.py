"""A sandbox of Landlock and seccomp, for machines without user namespaces."""

import json
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path

from ....tasks.processes.commands import child_env
from ..files.paths.guarded import guarded_folders, python_folders
from ..files.workspace import Workspace
from .bubblewrap import memory_file
from .command import Start
from .confine import landlock_version
from .limits import Limits, Wall
from .local import LocalSandbox
from .paths.guarded_files import guarded
from .paths.hidden_paths import hidden_paths
from .paths.put_back import Keeper
from .paths.scratch import Scratch
from .paths.toolchains import toolchains
from .unavailable import SandboxUnavailableError
from .variables import variables_for

_LEAST_VERSION = 3
"""The first version of Landlock that covers truncate(2); Linux 6.2 has it."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/ptmx")


class LandlockSandbox(LocalSandbox):
    """Runs commands that write the workspace only, without sockets.

    It is weaker than bubblewrap: commands see the processes of this machine, /tmp is at `TMPDIR`, they can change the
    mode of a user's other files, and parts of the workspace that others run as code are put back only after the
    command. The run's own trace is not protected if it is in the workspace. Raises
    SandboxUnavailableError for a workspace that contains a home or the Python that runs refold.

    Args:
        workspace: The commands' folder.
        limits: The limits of each command.
        show: Hidden paths to make readable.
        network: Whether commands have this machine's network.
    """

    name = "landlock"

    def __init__(
        self,
        workspace: Workspace | str | Path,
        limits: Limits | None = None,
        *,
        show: Sequence[str | Path] = (),
        network: bool = False,
    ) -> None:
        super().__init__(workspace, limits)
        self.show = [os.path.realpath(os.path.expanduser(each)) for each in show]
        self.network = network
        root = self.workspace.root
        inside = [each for each in self._hidden() if Path(each).is_relative_to(root) and not _is_socket(each)]
        inside += [str(each) for each in python_folders() if each.is_relative_to(root)]
        if inside or root == Path("/"):
            why = f"Landlock cannot protect {inside[0] if inside else '/'} inside of the workspace {root}"
            raise SandboxUnavailableError(self.name, why)

    @staticmethod
    def unavailable() -> str | None:
        """Return why Landlock does not work here, or None."""
        if landlock_version() >= _LEAST_VERSION:
            return None
        return "Landlock needs Linux 6.2 or later, and to be among the kernel's security modules (lsm=landlock,...)"

    @property
    def walls(self) -> frozenset[Wall]:
        """The barriers: files, and the network's if it is off."""
        return frozenset({"files"}) if self.network else frozenset({"files", "network"})

    def with_network(self) -> "LandlockSandbox":
        """Return this sandbox with a network."""
        other = copy(self)
        other.network = True
        return other

    def _hidden(self) -> set[str]:
        return hidden_paths(os.environ, self.workspace.root) - set(self.show) - {str(self.workspace.root)}

    @contextmanager
    def _prepared(self, argv: list[str], folder: Path, env: dict[str, str], scratch: Scratch) -> Iterator[Start]:
        root, own = self.workspace.root, scratch.path
        home = os.path.realpath(os.path.expanduser("~"))
        tools = toolchains(home, os.environ)
        for place in tools:
            if place.startswith(f"{home}/"):
                _link(own / "home", Path(place).relative_to(home), place)
        shown = [*tools.values(), *self.show, *map(str, python_folders()), sys.prefix]
        rules = {
            "read": [*_readable("/", self._hidden()), *shown],
            "write": [str(root), str(own / "tmp"), str(own / "home"), *_DEVICES],
            "network": self.network,
        }
        known = variables_for(root, network=self.network) | {"HOME": str(own / "home"), "TMPDIR": str(own / "tmp")}
        tops = sorted(guarded_folders(root)) if self.workspace.guard else []
        with Keeper(tops) as keeper, guarded(self.workspace) as guards, memory_file("rules") as file:
            file.write(json.dumps(rules).encode())
            file.seek(0)
            program = str(Path(__file__).with_name("confine.py"))
            start = [sys.executable, "-I", "-S", program, str(file.fileno()), *argv]
            starting = Start(
                start,
                child_env({**known, **env}),
                pass_fds=[file.fileno()],
                processes=self.limits.processes,
                notes=guards.notes,
            )
            try:
                yield starting
            finally:
                changed = keeper.put_back()
            if changed:
                names = ", ".join(os.path.relpath(each, root) for each in changed[:5])
                starting.undone.append(
                    f"[{names} was put back as it was: others run code from there; call again with outside=true if you "
                    "need to change it (git commit does), and say why]"
                )


def _readable(folder: str, hidden: set[str]) -> Iterator[str]:
    """Yield the paths that together contain all but the hidden ones."""
    if folder in hidden:
        return
    start = folder.rstrip("/") + "/"
    if not any(each.startswith(start) for each in hidden):
        yield folder
        return
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if not os.path.islink(start + name):
            yield from _readable(start + name, hidden)


def _link(home: Path, place: Path, target: str) -> None:
    """Make a link to a toolchain, unless something is there."""
    path = home / place
    if os.path.lexists(path) or any(each.is_symlink() for each in path.parents if each.is_relative_to(home)):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return True
