"""Runs jobs concurrently, up to a limit, and raises the first error unwrapped."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from .cancellation import is_cancelled, stray


async def several(jobs: Sequence[Callable[[], Awaitable[None]]], at_once: int) -> None:
    """Run the jobs, started in their order, at most `at_once` at a time.

    If a job raises, the others are cancelled and its error is raised, not inside an ExceptionGroup. If this returns,
    every job has returned: a job that something cancelled on its own counts as an error.
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
            except BaseException as raised:  # noqa: BLE001 - raised below: a Ctrl-C that leaves a task ends the loop
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
    """Return the one error to raise for several, groups unpacked.

    Cancellations come last, and errors that are no Exception (such as KeyboardInterrupt) first; of equals, the first.
    """
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
