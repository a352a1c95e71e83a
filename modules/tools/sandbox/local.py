"""The sandbox that is none but for its limits: commands run as this user, on this machine; base of the others."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread

from ....tasks.processes import child_env
from ..files.changing import Change, change_files
from ..files.workspace import Workspace
from .command import Command
from .limits import Finished, Limits, Wall


class LocalSandbox:
    """Runs commands in a folder of this machine, without walls: they can do what this user can.

    They get none of this process's variables but those that say where programs, home and language are. Whoever must
    not be able to read them elsewhere (in /proc, in files) needs a sandbox with walls.
    """

    name = "local"
    walls: frozenset[Wall] = frozenset()

    def __init__(self, workspace: Workspace | str | Path, limits: Limits | None = None) -> None:
        self.workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
        self.limits = limits or Limits()

    @staticmethod
    def unavailable() -> str | None:
        """Why there is no such sandbox on this machine; None where there is."""
        return None if sys.platform != "win32" else "commands need process groups, which Windows does not have"

    @property
    def python(self) -> Sequence[str]:
        """The command that starts Python: this one."""
        return [sys.executable]

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
        """See Sandbox.exec."""
        await anyio.lowlevel.checkpoint()
        with self.workspace.spot(cwd or ".") as spot:
            folder = self.workspace.root / spot.path
        if self.workspace.kind(cwd or ".") != "folder":
            raise NotADirectoryError(f"there is no folder {cwd}")
        given = stdin.encode("utf-8", "replace") if isinstance(stdin, str) else stdin
        full, variables = self._command(self._limited(argv), folder, dict(env or {}))
        command = Command(full, cwd=folder, env=variables, stdin=given)
        outcome: list[Finished | BaseException] = []

        def work() -> None:
            try:
                outcome.append(command.run(self.limits.timeout(timeout), self.limits.output_bytes, on_output))
            except BaseException as error:  # noqa: BLE001 - raised below, outside of the task group
                outcome.append(error)

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._kill_when_cancelled, command)
                await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(math.inf))
                group.cancel_scope.cancel()
        finally:
            if not outcome:  # it was cancelled before a thread took it
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(partial(_reap, command), limiter=anyio.CapacityLimiter(math.inf))
            await self._cleaned(full)
        await anyio.lowlevel.checkpoint()
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]

    async def read(self, path: str) -> bytes:
        """See Sandbox.read."""
        return (await anyio.to_thread.run_sync(self.workspace.read, path)).data

    async def write(self, path: str, data: bytes) -> None:
        """See Sandbox.write."""
        await anyio.to_thread.run_sync(change_files, self.workspace, [Change(path, data)])

    def _limited(self, argv: Sequence[str]) -> list[str]:
        """The command under those limits that are set from inside."""
        return self.limits.wrapped(argv)

    def _command(self, argv: list[str], folder: Path, env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        """The command that runs `argv` in `folder` with the variables `env`, and that command's own variables."""
        return argv, child_env(env)

    async def _cleaned(self, command: Sequence[str]) -> None:
        """Removes what is left of a command that has ended."""

    @staticmethod
    async def _kill_when_cancelled(command: Command) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            if not command.ended:
                command.kill()


def _reap(command: Command) -> None:
    command.kill()
    command.run(0, 1, None)
