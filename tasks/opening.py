"""Opening a task's environment with everything it asked for, and closing it again, whatever happens in between."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from ..errors import EnvironmentMismatchError
from .environment import Environment
from .issues import TaskValidationIssue
from .mounts import Mounts
from .registry import EnvironmentFactory, check_environment, create_environment
from .task import Task


@asynccontextmanager
async def open_environment(
    task: Task,
    workspace: str | Path | None = None,
    *,
    tools: Iterable[str] = (),
    resume: bool = False,
    factories: Mapping[str, EnvironmentFactory] | None = None,
) -> AsyncIterator[Environment | None]:
    """The open environment of `task`, its resources mounted; None if the task has no `env_spec`.

    `tools` are the names that the module offers. With `resume`, what stands at a mount's place is taken as it is: the
    run that goes on may have changed it. The environment is closed on every way out, also out of a half-done opening.

    Raises:
        EnvironmentMismatchError: it can't be had as the task asks for it; `issues` says why, with codes.
    """
    if task.env_spec is None:
        yield None
        return
    environment = create_environment(task.env_spec, workspace, factories=factories)
    if issues := check_environment(task.env_spec, tools=tools, environment=environment):
        raise EnvironmentMismatchError(issues)
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(environment)
            mounts = Mounts(task, workspace, environment.root, resume=resume)
            stack.push_async_callback(_in_thread, mounts.remove)
            await _in_thread(mounts.place)
        except EnvironmentMismatchError:
            raise
        except Exception as error:
            message = f"the {task.env_spec.type!r} environment could not be opened: {type(error).__name__}: {error}"
            issue = TaskValidationIssue(code="ENV_OPEN_FAILED", message=message, field="env_spec")
            raise EnvironmentMismatchError([issue]) from error
        yield environment


async def _in_thread(work: Callable[[], None]) -> None:
    """Run it in a thread and to its end, cancelled or not: a copy or a removal is not left half done."""
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(math.inf))
