"""An S3-compatible server on loopback that keeps a bucket in memory."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

from needed import need_package


@contextlib.contextmanager
def object_server() -> Iterator[str]:
    """Start the server; the value is a pattern of a store's URL, with `{}` for its prefix, a key and a secret.

    It serves S3 alone: moto's own server looks for the service of each request among all that it has, and closes the
    connection after it.
    """
    need_package("obstore", "moto", "flask", "flask_cors")
    from moto.moto_server.werkzeug_app import create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_request(self, *args: Any) -> None:
            """Write no line for each request."""

    server = make_server("127.0.0.1", 0, create_backend_app("s3"), threaded=True, request_handler=Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        with urlopen(Request(f"{endpoint}/bucket", method="PUT")) as made:
            assert made.status == 200
        yield f"s3://key:hidden-word@bucket/{{}}?endpoint={endpoint}&region=us-east-1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
