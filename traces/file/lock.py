"""One writer a trace: a lock on the file itself, never waited for, and none that a child process keeps alive."""

import contextlib
import os
import sys
import weakref
from pathlib import Path
from typing import Protocol

from ..errors import TraceLockedError, TraceWriteError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FAR = 1 << 40
"""Windows keeps others from *reading* locked bytes too, so there the lock lies on a byte beyond the file's end."""


def lock_file(fd: int, path: Path) -> None:
    """Take the lock of an open trace file or raise `TraceLockedError`.

    It is `flock(2)`'s kind of lock: it belongs to the open file, not to the process, so that two writers in one process
    exclude each other as well, and it goes when the last copy of the descriptor is closed.
    """
    try:
        if sys.platform == "win32":
            os.lseek(fd, _FAR, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        raise TraceLockedError(path, lock_holder(path)) from None
    except OSError as error:
        raise TraceWriteError(
            f"{path} can't be locked: {error.strerror}; keep traces on a disk that can", path
        ) from error


def lock_holder(path: Path) -> int | None:
    """Give the process that holds the lock of `path`, where the system tells (Linux); else None."""
    try:
        stat = os.stat(path)
        locks = Path("/proc/locks").read_text()
    except OSError:
        return None
    place = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}:{stat.st_ino}"
    for line in locks.splitlines():  # 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
        fields = line.split()
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5] == place and int(fields[4]) > 0:
            return int(fields[4])
    return None


class ForkAware(Protocol):
    """Something that holds descriptors which a forked child must not keep open."""

    def forget_in_child(self) -> None:
        """Close what was inherited; called in the child, right after the fork."""


_open: weakref.WeakSet[ForkAware] = weakref.WeakSet()


def close_in_children(holder: ForkAware) -> None:
    """Have `holder.forget_in_child()` called in each child that this process forks.

    Without this a tool's child process would keep the lock of a trace whose writer was killed.
    """
    _open.add(holder)


def _after_fork() -> None:
    for holder in list(_open):
        with contextlib.suppress(OSError):
            holder.forget_in_child()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
