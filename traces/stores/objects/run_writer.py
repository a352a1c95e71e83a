"""The writer of a trace in object storage."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import orjson

from ....errors import StoreError, TraceError, TraceTakenError, TraceWriteError
from ..owner import SECONDS, end_owner, person_text
from ..run_row import RunRow
from ..summaries import read_row
from .bucket import Bucket
from .segments import folder_of, owner_of, put_together, segment, segment_name

_BUFFER = 64 * 1024
_SHOWN = (b'{"kind":"header"', b'{"kind":"end"', b'{"kind":"wait"', b'{"kind":"input"', b'{"kind":"resume"')
"""The beginnings of the records after which the run's row is written again."""


class ObjectRun:
    """One run's trace in object storage, held for writing.

    It implements `Store` of `traces.file.trace_bytes`. Each append is a new object. `check` raises if the lease of the
    writer's task is lost.
    """

    def __init__(
        self,
        bucket: Bucket,
        run_id: str,
        epoch: int,
        owner: str,
        tag: str,
        data: bytes,
        last: int,
        *,
        buffered: bool,
        check: Callable[[], None],
        put_row: Callable[[RunRow], None],
    ) -> None:
        self.path: Path | None = None
        self._bucket = bucket
        self._run_id = run_id
        self._epoch = epoch
        self._owner = owner
        self._tag = tag
        self._data = bytearray(data)
        self._sent = len(data)
        self._last = last
        self._buffered = buffered
        self._check = check
        self._put_row = put_row
        self._pid = os.getpid()
        self._beating = threading.Lock()
        self._seen = time.time()
        """When the lease was last known to be this writer's."""
        self._is_lost = self._is_closed = False

    @property
    def size(self) -> int:
        """The number of bytes written, buffered ones included."""
        return len(self._data)

    def write(self, data: bytes) -> None:
        """Append complete lines.

        Raises `TraceTakenError` if another process holds the run, or `TraceWriteError`.
        """
        self._data += data
        if not self._buffered or len(self._data) - self._sent > _BUFFER:
            try:
                self.flush()
            except BaseException:
                del self._data[self._sent :]
                raise

    def flush(self) -> None:
        """Write the buffer as the next segment."""
        data = bytes(self._data[self._sent :])
        if not data:
            return
        try:
            self._check()
            self._check_lease()
            name = segment_name(self._run_id, self._last + 1)
            content = segment(self._epoch, self._owner, data)
            if not self._bucket.create(name, content):
                there = self._bucket.get(name)
                epoch, owner = owner_of(there.data) if there is not None else (self._epoch, "")
                raise TraceTakenError(self._name, person_text(owner) if epoch != self._epoch else None)
            self._last += 1
            self._sent += len(data)
            if any(line in data for line in _SHOWN):
                self.put_row()
        except StoreError as error:
            raise TraceWriteError(
                f"{self._name} cannot be written: {error}; its records are complete: resume the run"
            ) from error

    def put_row(self) -> None:
        """Write this run's row of the table of runs."""
        with contextlib.suppress(TraceError):  # readers of a corrupt trace report it
            self._put_row(read_row(BytesIO(bytes(self._data[: self._sent])), RunRow(self._run_id), self._sent))

    def _check_lease(self) -> None:
        """Raise `TraceTakenError` if another process holds the run, or it is gone.

        The lease is looked up if it may have run out: this process may have been stopped.
        """
        if abs(time.time() - self._seen) > SECONDS:
            self.beat()
        if self._is_lost:
            found = self._bucket.get(f"{folder_of(self._run_id)}lease")
            raise TraceTakenError(self._name, person_text(found.doc()["owner"]) if found else None)

    def beat(self) -> None:
        """Extend the run's lease, unless it is lost."""
        with self._beating:
            if self._is_closed or self._is_lost:
                return
            name, content = f"{folder_of(self._run_id)}lease", lease_content(self._epoch, self._owner, SECONDS)
            self._is_lost = not self._bucket.replace(name, content, self._tag)
            found = None if self._is_lost else self._bucket.get(name)
            self._is_lost = found is None or found.data != content
            if found is not None and not self._is_lost:
                self._tag, self._seen = found.tag, time.time()

    def sync(self) -> None:
        """Write the buffer; an acknowledged object is on the disk."""
        self.flush()

    def read(self) -> bytes:
        """Return everything written so far."""
        return bytes(self._data)

    def read_from(self, start: int) -> bytes:
        """Return what was written after the first `start` bytes."""
        return bytes(self._data[start:])

    def truncate(self, size: int) -> None:
        """Drop what is buffered beyond a size.

        An interrupted append may have been written all the same. The next append then finds its number taken by this
        writer's own segment, and raises: the run is resumed from its records.
        """
        if self._sent <= size:
            del self._data[size:]

    def is_in_place(self) -> bool:
        """Return True: each append checks that itself."""
        return True

    def remains(self) -> bytes:
        """Return nothing: objects are never moved."""
        return b""

    def close(self) -> None:
        """Merge the segments, and release the run."""
        if self._pid != os.getpid():
            return
        with self._beating:
            self._is_closed = True
            try:
                self._release()
            except StoreError:
                end_owner(self._owner)

    def _release(self) -> None:
        content = lease_content(self._epoch, self._owner, 0.0)
        if self._bucket.replace(f"{folder_of(self._run_id)}lease", content, self._tag):
            self.put_row()
            data = bytes(self._data[: self._sent])
            put_together(self._bucket, self._run_id, self._epoch, self._owner, data)

    @property
    def _name(self) -> str:
        return f"{self._bucket.url}#{self._run_id}"


def lease_content(epoch: int, owner: str, seconds: float) -> bytes:
    """Return the bytes of a run's lease object.

    It names the run's holder, and the seconds after its writing for which the lease lasts.
    """
    return orjson.dumps({"epoch": epoch, "owner": owner, "seconds": seconds})
