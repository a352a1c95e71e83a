"""Kills a process group, and its descendants in other groups."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def kill_group(group: int, *, leader_alive: bool, with_signal: int | None) -> bool:
    """Signal a process group; return whether it had any process.

    With None, no signal is sent. While the leader lives, its descendants in other sessions are found by their parents
    (on Linux, from /proc) and signalled, too. After the leader was waited for, the group's number stays reserved while
    the group has members. So if a process has that number then, it is another process, which must not be touched.
    """
    if not leader_alive and _exists(group):
        return False
    try:
        if with_signal is not None and leader_alive:
            os.killpg(group, signal.SIGSTOP)  # so that no process starts another one during the search
            for pid in _outsiders(group):
                _send(pid, with_signal)
        os.killpg(group, with_signal or 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # on macOS, only zombies are left; elsewhere, this process may not signal the group
    return True


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _send(pid: int, with_signal: int) -> None:
    try:
        os.kill(pid, with_signal)
    except (ProcessLookupError, PermissionError):
        return


def _outsiders(group: int) -> list[int]:
    """Return descendants of the group's members in other groups; empty without /proc."""
    parents, groups = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue  # the process ended meanwhile
        pid = int(stat.parent.name)
        parents[pid], groups[pid] = int(fields[1]), int(fields[2])
    family = {pid for pid, its in groups.items() if its == group}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return [pid for pid in family if groups[pid] != group]
