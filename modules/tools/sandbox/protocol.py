"""The protocol of sandboxes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from .limits import Finished, Limits, Wall


class Sandbox(Protocol):
    """Runs a model's commands in a workspace within limits."""

    @property
    def name(self) -> str:
        """The registered name."""

    @property
    def limits(self) -> Limits:
        """The limits of each command."""

    @property
    def walls(self) -> frozenset[Wall]:
        """The sandbox's barriers."""

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
        """Run a command, program and arguments, in the workspace or in `cwd`.

        The command sees a few variables of this process (`tasks.child_env`), and `env`. It is killed with all its
        processes after `timeout` seconds, or when the call is cancelled. When it ends, processes that it left behind
        are killed. `on_output` gets its output as it arrives, from a thread.

        Raises:
            CommandError: the command cannot be started.
            OutsideWorkspaceError: `cwd` is not in the workspace.
        """

    async def read(self, path: str) -> bytes:
        """Return the bytes of a file of the workspace.

        Raises `OutsideWorkspaceError` if the path leads out, and `OSError` if the file cannot be read.
        """

    async def write(self, path: str, data: bytes) -> None:
        """Write a file of the workspace, whole or not at all.

        Raises `OutsideWorkspaceError` if the path leads out, and `OSError` if the file cannot be written.
        """
