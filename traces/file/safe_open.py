"""Opens the files of a trace: regular files only, and no links.

A trace and the files beside it may come from a stranger: a link could lead to any file, and opening a pipe or a device
could block or have an effect.
"""

import errno
import os
import stat
from pathlib import Path

from ...errors import TraceError, TraceNotFoundError

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def open_file(path: Path, *, links: bool = False) -> int:
    """Open a regular file for reading and return its descriptor.

    A pipe is refused without waiting for its writer. `links=True` follows a symbolic link, for a path that a person has
    given. Raises `TraceNotFoundError`, or `TraceError` if the file is not a regular one or cannot be read.
    """
    try:
        if not _NO_LINK and not links and path.is_symlink():
            raise TraceError(f"{path} is a link: refold follows no links beside a trace")
        fd = os.open(path, _FLAGS | (0 if links else _NO_LINK))
    except FileNotFoundError:
        raise TraceNotFoundError(f"there is no trace at {path}", path) from None
    except ValueError as error:
        raise TraceError(f"{path!r} is not a path: {error}") from None
    except OSError as error:
        if error.errno == errno.ELOOP and not links:
            raise TraceError(f"{path} is a link: refold follows no links beside a trace") from None
        if error.errno == errno.ENXIO:
            raise TraceError(f"{path} is not a regular file") from None
        raise TraceError(f"{path} cannot be read: {error.strerror}") from error
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        if stat.S_ISDIR(mode):
            raise TraceNotFoundError(f"there is no trace at {path}", path)
        raise TraceError(f"{path} is not a regular file")
    return fd


def file_at(path: Path) -> Path:
    """Return the file at a given path, behind any symbolic link.

    The other files of a run are beside its file, and not beside a link to it.
    """
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def read_file(path: Path, *, links: bool = False, most: int | None = None) -> bytes:
    """Return the first `most` bytes of a file opened with `open_file`."""
    fd = open_file(path, links=links)
    with open(fd, "rb") as file:
        try:
            return file.read(-1 if most is None else most)
        except OSError as error:
            raise TraceError(f"{path} cannot be read: {error.strerror}") from error
