"""What of a workspace others run as code, outside of any sandbox: repositories, capabilities, this Python's folder.

Git runs the programs that `.git/config` and `.git/hooks` name at somebody's next `git status`; refold imports what is
in `.refold/capabilities`, Python what is in its environment. So all of it is read-only to tools, unless the workspace
says otherwise (`Workspace(root, guard=False)`).
"""

import os
import secrets
import sys
import unicodedata
from collections.abc import Collection, Iterator, Sequence, Set
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from ....errors import TaskError

_REPOSITORY = frozenset({"HEAD", "objects", "refs"})
"""What git takes for a repository, if a folder has it (setup.c: is_git_directory)."""
_NOT_SEARCHED = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Folders that are large and hold no work of anybody's."""


class GuardedError(TaskError, PermissionError):
    """A file that is not written as others run it as code; `path` is the one that was asked for."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} {why}; Workspace(root, guard=False) lets tools change it")
        self.path = path


def python_folders() -> list[Path]:
    """The folders of the Python that runs refold, with links resolved."""
    given = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    return list(dict.fromkeys(Path(os.path.realpath(each)) for each in given))


def why_guarded(root: Path, path: str) -> str | None:
    """Why the file of this path (from the root on, with links resolved) is not to be written; None if it may be."""
    parts = path.split("/")
    plain = [_plain(part) for part in parts]
    if ".git" in plain:
        return "is part of a git repository's own files, which git runs programs from"
    if any(pair == (".refold", "capabilities") for pair in pairwise(plain)):
        return "is where refold loads capabilities from"
    whole = root.joinpath(*parts)
    for folder in python_folders():
        if folder != root and whole.is_relative_to(folder) and folder.is_relative_to(root):
            return f"is part of the Python environment {folder.relative_to(root)}, which refold runs from"
    for depth in range(len(parts)):
        if _is_repository(root.joinpath(*parts[:depth]), parts[depth]):
            return "is part of a bare git repository, which git runs programs from"
    return None


def guarded_folders(root: Path) -> set[Path]:
    """What is guarded in a workspace and is there: folders, and files that name a repository elsewhere."""
    found = {folder for folder in python_folders() if folder != root and folder.is_relative_to(root)}
    for folder, names in _folders(root):
        for name in names:
            path = folder / name
            if _plain(name) == ".git":
                found.add(path)
                found.update(each for each in _led_to(path) if each != root and each.is_relative_to(root))
            elif _plain(name) == ".refold" and (path / "capabilities").is_dir():
                found.add(path / "capabilities")
        if folder != root and names >= _REPOSITORY:
            found.add(folder)
    return {each for each in found if not each.is_symlink()}


def set_aside(made: Collection[Path]) -> list[Path]:
    """Takes from what a command has made that others would run it: a repository's HEAD, and the name of capabilities.

    Gives what was renamed.
    """
    renamed: list[Path] = []
    for path in made:
        file = path if path.name == "capabilities" else path / "HEAD"
        with suppress(OSError):
            file.rename(file.with_name(f"{file.name}.set-aside-{secrets.token_hex(4)}"))
            renamed.append(path)
    return renamed


def _plain(name: str) -> str:
    """A name as file systems see it that know neither case nor characters without width."""
    return "".join(each for each in name if unicodedata.category(each) != "Cf").casefold()


def _is_repository(folder: Path, written: str) -> bool:
    """Whether a folder is a git repository, or becomes one when a path that begins with `written` is made in it."""
    if written not in _REPOSITORY and not (folder / "HEAD").exists():
        return False
    there = {name for name in (*_REPOSITORY, "commondir") if name == written or (folder / name).exists()}
    return there >= _REPOSITORY or there >= {"HEAD", "commondir"}


def _folders(root: Path) -> Iterator[tuple[Path, Set[str]]]:
    """The folders of a workspace with the names in them, but for the insides of what is guarded."""
    todo = [str(root)]
    while todo:
        folder = todo.pop()
        try:
            with os.scandir(folder) as entries:
                names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        except OSError:
            continue
        yield Path(folder), names.keys()
        is_repository = folder != str(root) and names.keys() >= _REPOSITORY
        below = [] if is_repository else [name for name, is_folder in names.items() if is_folder]
        todo += [f"{folder}/{name}" for name in below if name not in _NOT_SEARCHED and _plain(name) != ".git"]


def _led_to(path: Path) -> Sequence[Path]:
    """The folders that a `.git` which is a file, or a link, stands for: of worktrees and submodules."""
    found = [path.resolve()] if path.is_symlink() else []
    try:
        text = path.read_text("utf-8", "surrogateescape") if path.is_file() and path.stat().st_size < 10_000 else ""
        if text.startswith("gitdir:"):
            folder = (path.parent / text.removeprefix("gitdir:").strip()).resolve()
            found.append(folder)
            common = folder / "commondir"
            if common.is_file():
                found.append((folder / common.read_text("utf-8", "surrogateescape").strip()).resolve())
    except (OSError, ValueError):
        pass
    return found
