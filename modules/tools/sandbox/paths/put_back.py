"""Guarded files of a workspace, put back after a command."""

import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NOT_KEPT = frozenset({"objects", "index", "logs"})
"""The data of a repository, which nothing runs: what git stores, and what it notes while it reads."""


@dataclass(frozen=True)
class _Kept:
    """An entry's kind, mode, and content or target of a link."""

    mode: int
    data: bytes | str | None


class Keeper:
    """The entries of guarded paths, as they were before a command.

    Use it as a context manager: it holds the paths open, so that a path that was moved is found again.
    """

    def __init__(self, tops: Iterable[Path]) -> None:
        self._tops = sorted(tops)
        self._kept = {path: kept for top in self._tops for path in _entries(top) if (kept := _read(path)) is not None}

    def __enter__(self) -> "Keeper":
        self._fds = {top: os.open(top, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC) for top in self._tops}
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._fds.values():
            os.close(fd)

    def put_back(self) -> list[Path]:
        """Restore what has changed; return the changed entries.

        A guarded path that was moved is moved back. If its folder was moved or replaced, it is restored where it is.
        """
        changed: list[Path] = []
        for top in self._tops:
            now = Path(os.readlink(f"/proc/self/fd/{self._fds[top]}"))
            place = now if os.path.lexists(now) else top
            has_folder = top.parent.is_dir() and os.path.realpath(top.parent) == str(top.parent)
            if has_folder and place != top:
                if os.path.lexists(top):
                    _set_aside(top)
                os.rename(place, top)
                changed.append(top)
            if has_folder or place != top:
                changed += self._restore(top, top if has_folder else place)
        return changed

    def _restore(self, top: Path, place: Path) -> Iterator[Path]:
        kept = {place / path.relative_to(top): kept for path, kept in self._kept.items() if path.is_relative_to(top)}
        for path in reversed([*_entries(place)]):
            now, before = _read(path), kept.get(path)
            if before is None or now is None or stat.S_IFMT(now.mode) != stat.S_IFMT(before.mode):
                with suppress(OSError):
                    _set_aside(path) if path == place else _remove(path)
                yield path
        for path, before in kept.items():
            if _read(path) != before:
                _write(path, before)
                yield path


def _entries(top: Path) -> Iterator[Path]:
    if top.is_symlink() or os.path.lexists(top):
        yield top
    if not top.is_symlink() and top.is_dir():
        for entry in sorted(os.scandir(top), key=lambda each: each.name):
            if entry.name not in _NOT_KEPT:
                yield from _entries(Path(entry.path))


def _read(path: Path) -> _Kept | None:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return _Kept(mode, os.readlink(path))
        return _Kept(mode, path.read_bytes() if stat.S_ISREG(mode) else None)
    except OSError:
        return None


def _set_aside(path: Path) -> None:
    path.rename(path.with_name(f"{path.name}.set-aside-{secrets.token_hex(4)}"))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _write(path: Path, kept: _Kept) -> None:
    """Write an entry whose parents exist and are folders."""
    if isinstance(kept.data, str):
        path.symlink_to(kept.data)
    elif stat.S_ISDIR(kept.mode):
        path.mkdir(exist_ok=True)
        path.chmod(stat.S_IMODE(kept.mode))
    elif kept.data is not None:
        with suppress(FileNotFoundError):
            path.unlink()
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(fd, "wb") as file:
            file.write(kept.data)
            os.fchmod(fd, stat.S_IMODE(kept.mode))
