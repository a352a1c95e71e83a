"""Processes that end while one looks at them, and the descriptors of this one."""

import contextlib
import gc
import os

import psutil


def ended(pid: int) -> bool:
    """Whether a process has ended; a zombie, for whose end nobody has asked, has."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    return True


def children(word: str) -> set[int]:
    """The process ids of this process's descendants that run and have `word` in their command line."""
    found = set()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie, too, has no command line
            if word in " ".join(child.cmdline()):
                found.add(child.pid)
    return found


def descriptors() -> set[tuple[str, str]]:
    """The open descriptors of this process, each with what it leads to; none that is about to be collected.

    Compare with `<=`: what earlier tests have left open in a thread may be closed meanwhile. The watches of a few
    workspaces stay open until the process ends.
    """
    gc.collect()
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # that of the listing itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return {each for each in found if each[1] != "anon_inode:inotify"}
