"""Server-sent events: what has changed in the folder, or in one run."""

import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import anyio.to_thread
import orjson

from ..errors import TraceError
from ..traces.index.folder import Folder
from .pages.nodes import Json
from .pages.runs import families_of

_EVERY = 0.25
"""Seconds between two looks: rows come at most four times a second."""
_QUIET = 15.0
"""Seconds after which something is sent in any case, so that both sides notice a connection that is gone."""
_ROWS = 500


class Counting(threading.Thread):
    """Counts the errors and shapes of large traces in the background, where they are not yet known."""

    def __init__(self, folder: Folder) -> None:
        super().__init__(name="refold view: counting", daemon=True)
        self._folder = folder
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Read the folder, and count until `stop`."""
        self._folder.scan()
        while not self._stop_asked.wait(_EVERY):
            for name in list(self._folder.rows):
                if self._stop_asked.is_set():
                    return
                self._folder.complete((name,))

    def stop(self) -> None:
        """Stop counting, and wait until the trace under way is done."""
        self._stop_asked.set()
        self.join()


class Events:
    """The events of one listener.

    Args:
        folder: what is viewed.
        run: the run to tell of; None for the whole folder.
        server: the id of this start of the server.
        stopping: returns whether the server is about to stop.
    """

    def __init__(self, folder: Folder, run: str | None, server: str, stopping: Callable[[], bool]) -> None:
        self._folder, self._run, self._server, self._stopping = folder, run, server, stopping
        self._seen = folder.changes
        self._version = ""
        self._steps = 0

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield events until the listener goes or the server stops."""
        yield _event({"type": "hello", "server": self._server})
        look = self._look_at_run if self._run is not None else self._look_at_folder
        await anyio.to_thread.run_sync(self._begin, abandon_on_cancel=True)
        quiet = 0.0
        while not self._stopping():
            await anyio.sleep(_EVERY)
            event = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
            quiet = 0.0 if event is not None else quiet + _EVERY
            if event is not None:
                yield _event(event)
            elif quiet >= _QUIET:
                quiet = 0.0
                yield b": still here\n\n"

    def _begin(self) -> None:
        self._folder.scan(at_most_every=_EVERY)
        self._seen = self._folder.changes
        if self._run is not None:
            try:
                trace = self._folder.open(self._run)
                self._version, self._steps = trace.version, trace.count
            except (TraceError, OSError, KeyError):
                self._version = ""

    def _look_at_folder(self) -> Json | None:
        folder = self._folder
        folder.scan(at_most_every=_EVERY)
        if folder.changes == self._seen:
            return None
        before, self._seen = self._seen, folder.changes
        changed = folder.since(before)
        families = families_of(folder)
        present = [name for name in changed if name in families.rows]
        above = {families.above[name] for name in present if name in families.above}
        rows = [families.run_row(name) for name in dict.fromkeys([*present, *above])]
        return {"type": "runs", "rows": rows[:_ROWS], "removed": sorted(changed.difference(families.rows))}

    def _look_at_run(self) -> Json | None:
        folder, run = self._folder, self._run
        assert run is not None
        folder.scan(at_most_every=_EVERY)
        changed = run in folder.since(self._seen)
        self._seen = folder.changes
        if not changed or run not in folder.rows:
            return None
        steps = self._steps
        try:
            trace = folder.open(run)
            version, self._steps = trace.version, trace.count
        except (TraceError, OSError, KeyError):
            version = self._version
        if version < self._version or len(version) < len(self._version):
            steps = 0  # another file has its place
        self._version = version
        families = families_of(folder)
        if run not in families.rows:
            return None
        row = families.run_row(run)
        return {"type": "run", "row": row, "version": version, "from": min(steps, self._steps)}


def _event(document: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(document) + b"\n\n"
