"""Several jobs at a time: in their order, no more than a limit, and an error is raised as it was."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from .cancellation import is_cancelled, stray


async def several(jobs: Sequence[Callable[[], Awaitable[None]]], at_once: int) -> None:
    """Does the jobs, at most `at_once` at a time; where one raises, the others are cancelled and it is raised on.

    When it returns, each job has ended by itself: one that was cancelled alone counts as an error.
    """
    if len(jobs) == 1:
        await jobs[0]()
        return
    work = iter(jobs)
    errors: list[BaseException] = []
    cancelled = anyio.get_cancelled_exc_class()

    async def worker() -> None:
        for job in work:
            try:
                await job()
            except BaseException as raised:  # noqa: BLE001 - raised on below: Ctrl-C through a task would end the loop
                if not isinstance(raised, cancelled):
                    errors.append(raised)
                elif not is_cancelled():
                    errors.append(stray("one of several jobs", raised))
                group.cancel_scope.cancel()
                return

    async with anyio.create_task_group() as group:
        for _ in range(min(len(jobs), at_once)):
            group.start_soon(worker)
    if errors:
        error = the_one_of(errors)
        raise error from error.__cause__
    await checkpoint_if_cancelled()


def the_one_of(errors: Iterable[BaseException]) -> BaseException:
    """The error to raise for several: what is more than an Exception before others, else the first."""
    found = [leaf for error in errors for leaf in _leaves(error)]
    cancelled = anyio.get_cancelled_exc_class()
    told = [each for each in found if not isinstance(each, cancelled)] or found
    return next((each for each in told if not isinstance(each, Exception)), told[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
