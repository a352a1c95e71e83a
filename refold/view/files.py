"""The page's own files."""

from hashlib import blake2b
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

CLIENT = Path(__file__).parent / "client"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
_SHELL = "index.html"


def client_file(request: Request) -> Response:
    """Answer a request for a file of the page; every other address is the page itself.

    A file is looked up by its name among those that are there: an address is never used as a path.
    """
    name = request.url.path.lstrip("/")
    found = {path.relative_to(CLIENT).as_posix(): path for path in CLIENT.rglob("*") if path.suffix in _TYPES}
    path = found.get(name)
    if path is None and Path(name).suffix in _TYPES and Path(name).suffix != ".html":
        return Response("There is no such file.\n", 404, media_type="text/plain")
    path = path or found.get(_SHELL)
    if path is None or not path.is_file():
        return Response("The page's files are not installed.\n", 404, media_type="text/plain")
    data = path.read_bytes()
    tag = f'"{blake2b(data, digest_size=12).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, headers={**headers, "content-type": _TYPES[path.suffix]})
