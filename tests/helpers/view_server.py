"""The viewer's server on loopback, for tests that ask it questions."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from refold.traces.index.folder import Folder
from refold.view.actions import Actions, Modules
from refold.view.app import Viewer, make_app
from refold.view.live import Counting
from refold.view.serve import bind


class Asking:
    """Asks a server what the page asks."""

    def __init__(self, port: int, viewer: Viewer) -> None:
        self.port = port
        self.viewer = viewer
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)

    def get(self, name: str, **query: Any) -> Any:
        """Return the answer to a question; fails if it is refused. `from_` stands for `from`."""
        answer = self.http.get(f"/api/{name}", params={key.rstrip("_"): value for key, value in query.items()})
        assert answer.status_code == 200, (name, query, answer.text)
        return answer.json()

    def act(self, name: str, token: str | None = None, **body: Any) -> httpx.Response:
        """Return the answer to an action."""
        actions = self.viewer.actions
        headers = {"X-Refold-Token": token or (actions.token if actions is not None else "")}
        return self.http.post(f"/api/act/{name}", json=body, headers=headers)

    @contextmanager
    def events(self, **query: str) -> Iterator[Iterator[dict[str, Any]]]:
        """Listen to events within the block."""
        with self.http.stream("GET", "/api/events", params=query) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = (line for line in answer.iter_lines() if line.startswith("data: "))
            yield (httpx.Response(200, content=line[6:]).json() for line in lines)


@contextmanager
def serving(root: Path, files: Sequence[Path] | None = None, modules: Modules | None = None) -> Iterator[Asking]:
    """Serve a folder from a thread of this process within the block."""
    folder = Folder(root, files)
    viewer = Viewer(folder, Actions(folder, modules) if modules is not None else None)
    socket = bind(0)
    port = socket.getsockname()[1]
    config = uvicorn.Config(
        make_app(viewer, port), log_level="error", access_log=False, lifespan="off", ws="none",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    counting = Counting(folder)
    counting.start()
    folder.scan()  # every trace has been read when the first question comes
    asking = Asking(port, viewer)
    try:
        yield asking
    finally:
        viewer.stopping = server.should_exit = True
        asking.http.close()
        thread.join(30)
        counting.stop()
        folder.close()
        assert not thread.is_alive()
