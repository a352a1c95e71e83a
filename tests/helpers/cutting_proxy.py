"""A proxy before a PostgreSQL server, which cuts a connection at a chosen message."""

import contextlib
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

How = Literal["before", "after", "hang"]


class CuttingProxy:
    """Listens on loopback, and passes all bytes on until a cut.

    `cut(words, how)` cuts the next connection whose client sends these words: "before" the server gets them; "after"
    the server has answered, so that the answer is lost; "hang" like "before", but the server is not told, as when a
    machine between the two is switched off.
    """

    def __init__(self, home: Path) -> None:
        self._server = str(home / ".s.PGSQL.5432")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        self._next: list[tuple[bytes, How]] = []
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def url(self, schema: str) -> str:
        """Return the URL of a store in a schema, through this proxy."""
        return f"postgresql://refold@127.0.0.1:{self.port}/postgres?schema={schema}&sslmode=disable&gssencmode=disable"

    def cut(self, words: bytes, how: How) -> None:
        """Cut the next connection that sends these words."""
        self._next.append((words, how))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._sockets):
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                try:
                    server.connect(self._server)
                except OSError:  # the server is stopped
                    client.shutdown(socket.SHUT_RDWR)
                    continue
                self._threads.append(threading.Thread(target=self._serve, args=[client, server], daemon=True))
                self._threads[-1].start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        mute = threading.Event()
        answers = threading.Thread(target=self._answer, args=[client, server, mute], daemon=True)
        self._threads.append(answers)
        answers.start()
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if self._next and self._next[0][0] in data:
                    _, how = self._next.pop(0)
                    self.cuts += 1
                    mute.set()
                    if how == "after":
                        server.sendall(data)
                        server.shutdown(socket.SHUT_WR)  # it does what it was told, and then sees the end
                        answers.join()
                    if how == "hang":
                        client.shutdown(socket.SHUT_RDWR)
                        return
                    break
                server.sendall(data)
        for each in (server, client):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _answer(client: socket.socket, server: socket.socket, mute: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if not mute.is_set():
                    client.sendall(data)
        if not mute.is_set():
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
