"""The tool `web_search`: asks the search engine that was chosen, or a SearXNG that the environment names."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit

from ...engine import effect
from ...errors import ExternalError
from ..agent.tools import tool
from .fetching import FetchError, got
from .markdown import to_text

VARIABLE = "REFOLD_SEARCH_URL"
"""The environment variable with the URL of a SearXNG, or of what answers as one, such as http://localhost:8888."""
MOST_RESULTS = 10
_SECONDS = 30
_MOST_TOLD = 500


class SearchError(ExternalError, RuntimeError):
    """A search that could not be made."""


class NoSearchError(SearchError):
    """There is no search engine to ask."""


@dataclass(frozen=True)
class SearchResult:
    """One page that was found: its title, its URL, and a few words of it."""

    title: str
    url: str
    text: str = ""


SearchBackend = Callable[[str, int], Sequence[SearchResult]]
"""Gives at most so many results of a query, the best first; called in a worker thread, and may raise."""

_chosen: ContextVar[SearchBackend | None] = ContextVar("refold_search", default=None)


@contextmanager
def use_search(backend: SearchBackend | str) -> Iterator[None]:
    """Makes a search engine the one that `web_search` asks inside: a function, or the URL of a SearXNG."""
    token = _chosen.set(searxng(backend) if isinstance(backend, str) else backend)
    try:
        yield
    finally:
        _chosen.reset(token)


def searxng(url: str) -> SearchBackend:
    """The backend that asks a SearXNG at a URL for JSON, which its settings must allow (`search: formats: [json]`).

    Raises ValueError for what is no URL.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise ValueError(f"{url!r} is not a URL of a search engine; it begins with http:// or https://")

    def search(query: str, most: int) -> list[SearchResult]:
        asked = f"{url.rstrip('/')}/search?{urlencode({'q': query, 'format': 'json'})}"
        try:
            data, _, _ = got(asked, _SECONDS)
        except FetchError as error:
            raise SearchError(f"the search engine could not be asked: {error}") from error
        try:
            found = json.loads(data)["results"]
            return [_result(one) for one in found[:most]]
        except (ValueError, KeyError, TypeError) as error:
            raise SearchError(f"{url} answered what is not a list of results; does it give JSON?") from error

    return search


@tool
@effect(idempotent=True)
def web_search(
    query: Annotated[str, "What to search for"],
    num_results: Annotated[int, "How many results to give, at most 10"] = MOST_RESULTS,
) -> str:
    """Search the web, and give titles, URLs and a few words of the pages found. Use fetch to read one of them."""
    if not query.strip():
        raise ValueError("the query is empty")
    if num_results < 1:
        raise ValueError(f"num_results is a number from 1 to {MOST_RESULTS}, got {num_results}")
    results = _backend()(query, min(num_results, MOST_RESULTS))[: min(num_results, MOST_RESULTS)]
    told = [f"{n}. {one.title}\n   {one.url}\n   {one.text}".rstrip() for n, one in enumerate(results, 1)]
    return "\n".join(told) or f"Nothing was found for {query!r}."


def _backend() -> SearchBackend:
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    url = os.environ.get(VARIABLE)
    if not url:
        raise NoSearchError(
            f"there is no search engine to ask: set {VARIABLE} to the URL of a SearXNG, or choose one with use_search"
        )
    return searxng(url)


def _result(document: Any) -> SearchResult:
    text = " ".join(to_text(str(document.get("content") or "")).split())
    return SearchResult(str(document.get("title") or document["url"]), str(document["url"]), text[:_MOST_TOLD])
