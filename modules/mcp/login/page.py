"""The local page that ends a login in the browser.

RFC 8252, section 7.3, describes this redirect to the loopback interface.
"""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio

_DONE = b"<!doctype html><title>refold</title><p>You can close this page."


class LoginPage:
    """A page on the loopback interface that waits for one answer.

    The page uses the given port if that is free.
    """

    def __init__(self, port: int = 0, seconds: float = 300) -> None:
        got = self._got = dict[str, str]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                target = urlsplit(self.path)
                query = dict(parse_qsl(target.query))
                fits = target.path == "/callback" and ("code" in query or "error" in query)
                self.send_response(200 if fits else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                if fits:
                    got.update(query)
                    self.wfile.write(_DONE)

            def log_message(self, *args: Any) -> None:
                pass

        try:
            self._server = HTTPServer(("127.0.0.1", port), Handler)
        except OSError:
            self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._server.timeout = 0.2
        self._seconds = seconds
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self.url = f"http://127.0.0.1:{self._server.server_port}/callback"

    def start(self) -> None:
        """Start listening for the answer."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._listen, daemon=True, name="refold-mcp-login")
            self._thread.start()

    async def wait(self) -> dict[str, str]:
        """Return the parameters of the browser's request; empty after the timeout."""
        try:
            with anyio.move_on_after(self._seconds):
                while not self._got:
                    await anyio.sleep(0.05)
        finally:
            self._closing.set()
        return dict(self._got)

    def close(self) -> None:
        """Stop listening."""
        self._closing.set()
        if self._thread is None:
            self._server.server_close()

    def _listen(self) -> None:
        with self._server:
            while not self._closing.is_set() and not self._got:
                self._server.handle_request()
