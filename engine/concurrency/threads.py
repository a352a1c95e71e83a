"""Runs sync hooks, tools and effects in daemon threads.

Python cannot stop a thread. So when a deadline passes, the thread is abandoned: nobody waits for it any longer, its
result is dropped, and as a daemon it does not keep the process alive. A child process for which the thread waits
(`tasks.apart`) is killed.

On asyncio, `_Pool` keeps idle threads for the next job. At most `MOST` jobs are at work at a time, in all runs of the
process; further jobs queue. Some jobs do not count towards `MOST`, since they could block all others for good:

    an abandoned job               nobody knows when it will end
    a job whose thread waits       see `waits_in_thread`; it may wait for a person's answer
    a job inside another job       the outer job runs an event loop, and counts for both

On trio, anyio's threads do the work: see `trio_threads`.
"""

import asyncio
import os
import threading
from asyncio import events
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from typing import Any

from ...errors import NoThreadError
from ...tasks.processes.apart import kill_work_of
from .thread_calls import MOST, RUNNING, awaitable, outcome_of
from .trio_threads import GRANTS, in_trio_thread

try:
    from sniffio import current_async_library_cvar as _loop_name
except ImportError:  # without sniffio, anyio looks for a running loop, and a worker thread has none
    _loop_name = None  # type: ignore[assignment]

_IDLE_SECONDS = 20.0
"""The seconds for which a worker waits for its next job before it ends."""


Then = Callable[["Job", Any], None]
"""Called by a worker with the value of its call; may give the thread a further call (`Job.go_on`)."""


class Job(asyncio.Future[Any]):
    """One call for a worker, and the future of its result.

    One task awaits the job. If that task is cancelled, the call is abandoned.

    `counts`: the job counts towards MOST while at work. `queued`: the job waits for room. `left`: nobody waits for the
    job any longer. `over`: the call has ended. `ident`: the thread that is at work on the job.
    """

    left = over = queued = False
    then: Then | None = None
    further: "Job | None" = None
    """The call that follows in the same thread, whose result is delivered with this job's."""
    ended: tuple[Any, BaseException | None] = None, None
    _apart: Context
    """A copy of the context, for `then` and the further call."""
    _gate: AbstractContextManager[Any] = nullcontext()
    """Held while `then` works, so that an abandoned job starts nothing further."""
    ident: int | None = None
    _waiter: tuple[Callable[[Any], object], Context] | None = None
    """The callback that resumes the awaiting task, and its context."""

    def __init__(
        self,
        fn: Callable[..., Any],
        kwargs: dict[str, Any],
        context: Context,
        loop: asyncio.AbstractEventLoop,
        counts: bool,
    ) -> None:
        super().__init__(loop=loop)
        self.fn = fn
        self.kwargs = kwargs
        self.context = context
        self.loop = loop
        self.counts = counts

    def add_done_callback(self, fn: Callable[[Any], object], *, context: Context | None = None) -> None:
        """Keep the callback of the awaiting task for `deliver`.

        A future would schedule it for the loop's next iteration, which is a fifth of the cost of a change of threads.
        """
        if self._waiter is None and context is not None and not self.done():
            self._waiter = fn, context
        else:
            super().add_done_callback(fn, context=context)

    def cancel(self, msg: Any = None) -> bool:
        """Abandon the call and the one that follows it."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            super().add_done_callback(waiter[0], context=waiter[1])
        with self._gate:
            cancelled = super().cancel(msg)
            if cancelled:
                _pool.leave(self)
        if cancelled and self.further is not None:
            self.further.cancel(msg)
        return cancelled

    def continued_by(self, then: Then) -> None:
        """Let the worker call `then` with the value, unless abandoned."""
        self.then, self._apart, self._gate = then, self.context.copy(), threading.Lock()

    def go_on(self, fn: Callable[..., Any], kwargs: dict[str, Any]) -> "asyncio.Future[Any]":
        """Let this thread call `fn(**kwargs)` next; for use by `then`."""
        self.further = Job(fn, kwargs, self._apart, self.loop, counts=False)
        return self.further

    def work(self) -> None:
        """Do this job and its further one, in this thread."""
        value, error = self.ended = _done(self)
        if self.then is None or error is not None:
            return
        with self._gate:
            if self.left:
                return
            try:
                self._apart.run(self.then, self, value)
            except BaseException as raised:  # noqa: BLE001 - it is raised again where the job is awaited
                self.ended = None, awaitable(raised)
        if self.further is not None:
            self.further.ended = _done(self.further)

    def deliver(self) -> None:
        """Set the result, and resume the task that awaits it."""
        if self.done():
            return
        if self.further is not None:
            self.further.deliver()
        value, error = self.ended
        del self.ended
        if error is None:
            self.set_result(value)
        else:
            self.set_exception(error)
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            resume, context = waiter
            context.run(resume, self)


class _Worker(threading.Thread):
    """A daemon thread that does one job after another."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="refold worker")
        self.jobs: SimpleQueue[Job] = SimpleQueue()

    def run(self) -> None:
        job: Job | None = None
        while True:
            try:
                job = self.jobs.get(timeout=_IDLE_SECONDS) if job is None else job
            except Empty:
                if _pool.retired(self):
                    return
                continue  # the pool has just taken this worker for a job, which is on its way
            done = job
            done.work()
            job = _pool.next(done, self)  # before the result is delivered: the loop may then reuse this idle worker
            with suppress(RuntimeError):  # the loop is closed: nobody waits for the result
                done.loop.call_soon_threadsafe(done.deliver)
            del done  # an idle worker must not keep a result alive


def _done(job: Job) -> tuple[Any, BaseException | None]:
    """Do a job, unless it was abandoned; return its value and error."""
    if not _pool.begins(job, threading.get_ident()):
        return None, None
    return outcome_of(job.fn, job.kwargs, job.context)


class _Pool:
    """The workers of this process, and the jobs that wait for one."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all workers and jobs: a forked child has no such threads."""
        self._lock = threading.Lock()
        self._idle: deque[_Worker] = deque()
        self._waiting: deque[Job] = deque()
        self._at_work = 0

    def give(self, job: Job) -> None:
        """Start a job, now or once there is room.

        Raises NoThreadError if the process can start no thread, and none of its threads could become free.
        """
        with self._lock:
            if job.counts:
                if self._at_work >= MOST:
                    self._queue(job)
                    return
                self._at_work += 1
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker()
            try:
                worker.start()
            except RuntimeError as error:  # can't start new thread
                self._put_off(job, error)
                return
        worker.jobs.put(job)

    def _put_off(self, job: Job, error: RuntimeError) -> None:
        """Queue a job without a thread until another job ends."""
        with self._lock:
            if job.counts:
                self._at_work -= 1
            if self._at_work < 1:
                raise NoThreadError(f"this process can start no thread for sync code: {error}") from error
            job.counts = True
            self._queue(job)

    def _queue(self, job: Job) -> None:
        job.queued = True
        self._waiting.append(job)

    def begins(self, job: Job, ident: int) -> bool:
        """Record that a thread starts a job; return False if abandoned."""
        with self._lock:
            if not job.left:
                job.ident = ident
            return not job.left

    def next(self, done: Job, worker: _Worker) -> Job | None:
        """Return the worker's next job after `done`, or None to idle."""
        with self._lock:
            done.over = True
            if done.further is not None:
                done.further.over = True
            if done.counts and not done.left:
                self._at_work -= 1
            found = self._taken() if self._waiting else None
            if found is None:
                self._idle.append(worker)
            return found

    def _taken(self) -> Job | None:
        """Take and count the first queued job that is still wanted.

        Returns None if there is no such job, or no room.
        """
        while self._waiting and self._at_work < MOST:
            job = self._waiting.popleft()
            job.queued = False
            if not job.left:
                self._at_work += 1
                return job
        return None

    def leave(self, job: Job) -> None:
        """Abandon a job: it no longer counts, and does not start."""
        with self._lock:
            if job.left or job.over:
                return
            job.left = True
            if job.ident is not None:
                kill_work_of(job.ident)
            if not job.counts or job.queued:
                return
        self._make_room()

    def _make_room(self) -> None:
        """Start a queued job in place of one at work."""
        with self._lock:
            self._at_work -= 1
            job = self._taken()
            if job is None:
                return
            self._at_work -= 1  # `_taken` has counted the job, and `give` counts it again
        self.give(job)

    def retired(self, worker: _Worker) -> bool:
        """Remove an idle worker; return False if it has a new job."""
        with self._lock:
            try:
                self._idle.remove(worker)
            except ValueError:
                return False
            return True

    @contextmanager
    def waits(self) -> "Iterator[None]":
        """Let another job take this thread's place inside the block.

        Does nothing outside of a worker's job.
        """
        ident = threading.get_ident()
        if ident in GRANTS:
            grant = GRANTS[ident]
            grant(1)
            try:
                yield
            finally:
                grant(-1)
        elif ident in RUNNING and _is_worker():
            self._make_room()
            try:
                yield
            finally:
                with self._lock:
                    self._at_work += 1
        else:
            yield


def _is_worker() -> bool:
    return isinstance(threading.current_thread(), _Worker)


_pool = _Pool()
waits_in_thread = _pool.waits
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.clear)


def in_thread(fn: Callable[..., Any], kwargs: dict[str, Any], then: Then | None = None) -> Awaitable[Any]:
    """Start `fn(**kwargs)` in a worker thread, in a copy of the context.

    Await the result at once. If the waiting task is cancelled, the thread is abandoned. In the copy of the context, no
    event loop counts as running, so `fn` may start one. `then` may give the thread a further call (see
    `Job.continued_by`), except on trio.

    Raises NoThreadError if the process can start no thread, and none of its threads could become free.
    """
    context = copy_context()
    if _loop_name is not None:
        context.run(_loop_name.set, None)
    loop = events._get_running_loop()
    if loop is None:
        return in_trio_thread(fn, kwargs, context)
    # A loop in a worker thread: the worker's own job counts for both.
    job = Job(fn, kwargs, context, loop, threading.get_ident() not in RUNNING)
    if then is not None:
        job.continued_by(then)
    _pool.give(job)
    return job
