"""Copies of a trace as a crash might have left it: cut at any byte, with all that belongs to it."""

import shutil
from itertools import count
from pathlib import Path
from typing import Protocol

from ..traces import SUFFIX, Trace


class Copies(Protocol):
    """A kind of store: where runs keep their traces, and how one is copied."""

    folder: Path | None
    """What an engine is given as `traces`."""

    def copy(self, trace: Trace, data: bytes) -> Trace:
        """A trace of its own that holds `data`, with the blobs and relatives of `trace`."""


class MemoryCopies:
    """Traces in memory."""

    folder: Path | None = None

    def copy(self, trace: Trace, data: bytes) -> Trace:
        """See Copies."""
        original = trace.memory()
        copied = Trace.from_bytes(data, blobs=dict(original.blobs))
        for run_id, other in original.family.stores.items():
            if run_id != trace.run_id:
                relative = Trace.from_bytes(other.read(), blobs=dict(other.blobs))
                relative.memory().join(copied.memory())
        return copied


class FileCopies:
    """Traces in files, each copy in a folder of its own below `root`."""

    def __init__(self, root: Path) -> None:
        self.folder: Path | None = root / "runs"
        self._root = root
        self._numbers = count()

    def copy(self, trace: Trace, data: bytes) -> Trace:
        """See Copies."""
        assert trace.path is not None
        folder = self._root / f"copy{next(self._numbers)}"
        folder.mkdir(parents=True)
        name = trace.path.name.removesuffix(SUFFIX)
        for beside in trace.path.parent.glob(f"{name}.*"):
            if beside.is_dir():
                shutil.copytree(beside, folder / beside.name)
        path = folder / trace.path.name
        path.write_bytes(data)
        return Trace.load(path)
