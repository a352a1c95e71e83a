"""What a sandbox is: where commands of a model run, with which files, and within which limits."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from .limits import Finished, Limits, Wall


class Sandbox(Protocol):
    """Runs commands in a workspace. `check_sandbox` tells whether one keeps what it promises."""

    @property
    def name(self) -> str:
        """The name under which it is registered."""

    @property
    def limits(self) -> Limits:
        """What each command may take."""

    @property
    def walls(self) -> frozenset[Wall]:
        """What it keeps commands from."""

    @property
    def python(self) -> Sequence[str]:
        """The command that starts Python."""

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_output: Callable[[str], object] | None = None,
    ) -> Finished:
        """Runs a command, program and arguments, in the workspace or in `cwd` inside of it.

        It sees few variables of this process's (`tasks.child_env`), and `env`. It is killed with all that it has
        started after `timeout` seconds, when the call is cancelled, and what it has left behind when it ends.
        `on_output` is given its output as it comes, from a thread.

        Raises:
            CommandError: it cannot be started.
            OutsideWorkspaceError: `cwd` is not in the workspace.
        """

    async def read(self, path: str) -> bytes:
        """The bytes of a file of the workspace; raises OutsideWorkspaceError, OSError."""

    async def write(self, path: str, data: bytes) -> None:
        """Writes a file of the workspace, whole or not at all; raises OutsideWorkspaceError, OSError."""
