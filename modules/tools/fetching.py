"""The tool `fetch`: gets a page by HTTP, as Markdown, text or HTML."""

import re
import time
import zlib
from http.client import HTTPException
from typing import IO, Annotated, Any, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ...engine import effect
from ..agent.tools import tool
from .markdown import to_markdown, to_text

MOST_BYTES = 5_000_000
"""How many bytes of a page are taken."""
MOST_SHOWN = 50_000
"""How many characters of it are given."""
MOST_SECONDS = 120
_AGENT = "refold-fetch/1 (an agent's tool)"
_CHARSET = re.compile(r"charset=[\"']?([-\w.:]+)", re.IGNORECASE)


class FetchError(RuntimeError):
    """A page that could not be had."""


@tool
@effect(idempotent=True)
def fetch(
    url: Annotated[str, "The URL to fetch, http:// or https://"],
    format: Annotated[Literal["markdown", "text", "html"], "What an HTML page is given as"] = "markdown",
    timeout: Annotated[int, "How many seconds it may take, at most 120"] = 30,
) -> str:
    """Fetch a page of the web by a GET request, and give its text.

    At most 5 MB are taken and 50,000 characters given. Pictures and other files that hold no text are refused.
    """
    return page(url, format, timeout, MOST_SHOWN)


def page(url: str, format: Literal["markdown", "text", "html"], timeout: int, most: int) -> str:
    """The text of a page, at most so many characters of it; raises FetchError, and ValueError for no URL."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise ValueError(f"{url!r} is no URL that can be fetched; it begins with http:// or https://")
    if timeout <= 0:
        raise ValueError(f"timeout is a number of seconds above 0, got {timeout}")
    data, kind, final = got(url, min(timeout, MOST_SECONDS))
    if not _is_text(kind, data):
        raise FetchError(f"{final} is {kind or 'a file of unknown type'}, which holds no text")
    text = _decoded(data, kind)
    if "html" in kind and format == "markdown":
        text = to_markdown(text, final)
    elif "html" in kind and format == "text":
        text = to_text(text)
    if len(text) <= most:
        return text
    return f"{text[:most]}\n\n[... {len(text) - most} more characters ...]"


class _HttpOnly(HTTPRedirectHandler):
    """Follows redirects to other pages of the web alone."""

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise FetchError(f"{req.full_url} leads to {newurl}, which is no page of the web")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def got(url: str, seconds: int) -> tuple[bytes, str, str]:
    """The bytes of a page, its content type, and the URL that it was found at in the end; raises FetchError."""
    deadline = time.monotonic() + seconds
    accept = "text/markdown, text/html;q=0.9, text/*;q=0.8, application/json;q=0.8, */*;q=0.1"
    request = Request(url, headers={"User-Agent": _AGENT, "Accept": accept, "Accept-Encoding": "gzip"})
    try:
        with build_opener(_HttpOnly).open(request, timeout=seconds) as answer:
            body = _Body(answer.headers.get("Content-Encoding", ""))
            while not body.full and (chunk := answer.read1(65536)):
                body.add(chunk)
                if time.monotonic() > deadline:
                    raise FetchError(f"{url} took longer than {seconds} s")
            return body.data, answer.headers.get("Content-Type", "").lower(), answer.url
    except HTTPError as error:
        with error:
            shown = error.read(2_000).decode("utf-8", "replace")
        text = to_text(shown) if "html" in error.headers.get("Content-Type", "") else shown
        raise FetchError(f"{url} answers {error.code} {error.reason}: {text[:500]}".rstrip(": ")) from None
    except TimeoutError:
        raise FetchError(f"{url} took longer than {seconds} s") from None
    except (URLError, OSError, HTTPException, zlib.error, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise FetchError(f"{url} could not be fetched: {reason}") from None


class _Body:
    """The body of an answer, unpacked where it is packed, and never more of it than is taken."""

    def __init__(self, encoding: str) -> None:
        self.data = b""
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding.lower() in ("gzip", "deflate") else None

    @property
    def full(self) -> bool:
        return len(self.data) >= MOST_BYTES

    def add(self, chunk: bytes) -> None:
        room = MOST_BYTES - len(self.data)
        self.data += chunk[:room] if self._unpack is None else self._unpack.decompress(chunk, room)


def _is_text(kind: str, data: bytes) -> bool:
    head = kind.partition(";")[0].strip()
    if head.startswith("text/") or any(each in head for each in ("json", "xml", "javascript", "yaml", "html")):
        return True
    return not head.startswith(("image/", "audio/", "video/", "font/")) and b"\0" not in data[:8192]


def _decoded(data: bytes, kind: str) -> str:
    told = _CHARSET.search(kind) or _CHARSET.search(data[:2048].decode("ascii", "replace"))
    for name in (told[1] if told else "utf-8", "utf-8"):
        try:
            return data.decode(name, "replace" if name == "utf-8" else "strict")
        except (LookupError, UnicodeDecodeError):
            continue
    return data.decode("utf-8", "replace")
