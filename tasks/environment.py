"""What an environment is to the tools that use it, and how they find the one of their run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from pydantic import BaseModel, ConfigDict

from ..errors import NoEnvironmentError


class ExecResult(BaseModel):
    """What came of a command: its output as text (UTF-8, what is none replaced by U+FFFD)."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    returncode: int
    """0 is success; -n, on POSIX, is death by signal n."""
    stdout: str
    stderr: str
    timed_out: bool = False
    """The timeout passed, and the command was killed with its children; the output is what it had written."""
    truncated: bool = False
    """It wrote more than is kept (10 MB of each stream); the rest was read and dropped."""

    @property
    def ok(self) -> bool:
        """The command ended by itself and with 0."""
        return self.returncode == 0 and not self.timed_out


_ErrorType = type[BaseException]


class Environment(Protocol):
    """A folder that tools read, write and run commands in, open from `open()` (or `async with`) until `close()`.

    Opening that fails leaves nothing behind, closing twice is fine, and everything else raises
    `EnvironmentNotOpenError` before and after. `FolderEnvironment` has all of it for a folder on this machine.
    """

    @property
    def type(self) -> str:
        """The name under which it is registered."""

    @property
    def root(self) -> Path:
        """The folder, with links resolved."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What it can do: "read", "write", "exec", "fork", and what its maker adds."""

    def path(self, relative: str | Path) -> Path:
        """The real path of something inside the root. Raises `OutsideWorkspaceError` if it leads out."""

    def read_text(self, relative: str | Path) -> str:
        """The text (UTF-8) of a file inside the root."""

    def write_text(self, relative: str | Path, text: str) -> None:
        """Write a file (UTF-8) inside the root; folders above it are made."""

    def list(self, relative: str | Path = ".") -> Sequence[str]:
        """The names in a folder inside the root, sorted; those of folders end in `/`."""

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> ExecResult:
        """Run a command; cancelling it, `timeout` seconds, or closing kills it with its children."""

    def exec_sync(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> ExecResult:
        """`exec` for a worker thread."""

    async def open(self) -> None:
        """Make it ready; if that fails, all that was made is removed before the error is raised."""

    async def close(self) -> None:
        """Kill what still runs and remove what opening made."""

    async def fork(self) -> Environment:
        """An open environment with a copy of the files as they are now; whoever forks closes it.

        Raises `NotForkableError` without the capability "fork".
        """

    async def adopt(self, fork: Environment) -> None:
        """Take over the files of a fork: those here are replaced by copies of its own.

        Raises `NotForkableError` without the capability "fork".
        """

    async def __aenter__(self) -> Self:
        """Open it, unless it is open."""

    async def __aexit__(
        self, kind: _ErrorType | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Close it, also when cancelled."""


_current_environment: ContextVar[Environment | None] = ContextVar("refold.environment", default=None)


def current_environment() -> Environment:
    """The environment of the run that this code is part of.

    Raises:
        NoEnvironmentError: there is none.
    """
    environment = _current_environment.get()
    if environment is None:
        raise NoEnvironmentError
    return environment


@contextmanager
def use_environment(environment: Environment | None) -> Iterator[None]:
    """Make `environment` the current one for what runs inside; with None there is none."""
    token = _current_environment.set(environment)
    try:
        yield
    finally:
        _current_environment.reset(token)
