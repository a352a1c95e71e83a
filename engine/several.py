"""Several jobs at a time: in their order, no more than a limit, and an error is raised as it was."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

import anyio


async def several(jobs: Sequence[Callable[[], Awaitable[None]]], at_once: int) -> None:
    """Does the jobs, at most `at_once` at a time; where one raises, the others are cancelled and it is raised on."""
    if len(jobs) == 1:
        await jobs[0]()
        return
    work = iter(jobs)

    async def worker() -> None:
        for job in work:
            await job()

    try:
        async with anyio.create_task_group() as group:
            for _ in range(min(len(jobs), at_once)):
                group.start_soon(worker)
    except BaseExceptionGroup as raised:
        error = the_one_of(raised)
        raise error from error.__cause__


def the_one_of(error: BaseException) -> BaseException:
    """The error to raise in place of a group: what is more than an Exception before others, else the first."""
    found = list(_leaves(error))
    cancelled = anyio.get_cancelled_exc_class()
    told = [each for each in found if not isinstance(each, cancelled)] or found
    return next((each for each in told if not isinstance(each, Exception)), told[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
