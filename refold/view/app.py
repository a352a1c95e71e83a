"""The server's addresses: the page's files, and under `/api/` what the page asks.

Each question of `Source` in `client/api.d.ts` is a GET with its arguments as the query.
"""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import anyio.to_thread
import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from ..errors import RefoldError, TraceCorruptError, TraceError, TraceLockedError, TraceNotFoundError
from ..traces.index.folder import Folder
from ..traces.index.indexed import IndexedTrace, StaleIndexError
from .actions import Actions
from .files import client_file
from .live import Events
from .pages import changes, chat, compare, family, run, runs, search, step, values
from .pages.problems import ProblemError, not_here, wrong
from .security import Guard

_logger = logging.getLogger("refold.view")
_SCAN = 0.2
"""Seconds for which the list of files counts as fresh."""

_TRIES = 3
"""How often an index that does not fit is made anew for one question: another viewer may be at it, too."""
_BODY = 1 << 24
"""The largest action, in bytes: an edit may set a large value."""

Arguments = Mapping[str, str]
Answer = Callable[[Arguments], Any]


class Viewer:
    """The server's state: a folder, and whether it is about to stop."""

    def __init__(self, folder: Folder, actions: Actions | None = None) -> None:
        self.folder = folder
        self.actions = actions
        self.server = secrets.token_hex(8)
        """The id of this start of the server."""
        self.stopping = False

    def trace(self, query: Arguments) -> IndexedTrace:
        """Return the trace of the run that a question is about."""
        return self.folder.open(self.known(query))

    def known(self, query: Arguments, name: str = "id") -> str:
        """Return the id in a question; raises `ProblemError` if no run here has it."""
        run_id = query.get(name)
        if run_id is None:
            raise wrong(f"{name} is missing")
        if run_id not in self.folder.rows:
            self.folder.scan()
        if run_id not in self.folder.rows:
            raise not_here(run_id)
        return run_id

    # the questions

    def runs(self, query: Arguments) -> Any:
        """Answer `runs`."""
        self.folder.scan(at_most_every=_SCAN)
        return runs.runs(self.folder, query)

    def totals(self, query: Arguments) -> Any:
        """Answer `totals`."""
        return runs.totals(self.folder, query.get("ids", "").split(","))

    def run(self, query: Arguments) -> Any:
        """Answer `run`."""
        self.folder.scan(at_most_every=_SCAN)
        name = self.known(query)
        families = runs.families_of(self.folder)
        row = families.run_row(name)
        return run.run(self.folder.open(name), row, actions_allowed=self.actions is not None)

    def columns(self, query: Arguments) -> Any:
        """Answer `columns`."""
        trace = self.trace(query)
        return run.columns(trace, _number(query, "from", 0), _number(query, "to", 2**53), _number(query, "n", 700))

    def steps(self, query: Arguments) -> Any:
        """Answer `steps`."""
        return run.steps(self.trace(query), _number(query, "from"), _number(query, "to"))

    def find(self, query: Arguments) -> Any:
        """Answer `find`."""
        back = query.get("back") in ("true", "1")
        return run.find(self.trace(query), _number(query, "from"), query.get("mode", ""), back)

    def step(self, query: Arguments) -> Any:
        """Answer `step`."""
        return step.step(self.folder, self.trace(query), _number(query, "k"))

    def changes(self, query: Arguments) -> Any:
        """Answer `changes`."""
        return changes.changes(self.trace(query), _number(query, "k"))

    def state(self, query: Arguments) -> Any:
        """Answer `state`."""
        offset, limit = _number(query, "offset", 0), _number(query, "limit", 200)
        return values.state(self.trace(query), _number(query, "k"), query.get("path", ""), offset, limit)

    def value(self, query: Arguments) -> Any:
        """Answer `value`."""
        offset, length = _number(query, "offset", 0), _number(query, "length", 65_536)
        return values.value(self.trace(query), query.get("at", ""), offset, length)

    def history(self, query: Arguments) -> Any:
        """Answer `history`."""
        return values.history(self.trace(query), query.get("path", ""), _number(query, "offset", 0))

    def search(self, query: Arguments) -> Any:
        """Answer `search`."""
        return search.search(self.trace(query), query.get("q", ""), query.get("after") or None)

    def chat(self, query: Arguments) -> Any:
        """Answer `chat`."""
        return chat.chat(self.folder, self.trace(query), _number(query, "from", 0), _number(query, "to", 200))

    def compare(self, query: Arguments) -> Any:
        """Answer `compare`."""
        a, b = self.known(query, "a"), self.known(query, "b")
        k = _number(query, "k") if "k" in query else None
        return compare.compare(self.folder, a, b, _number(query, "n", 700), k)

    def family(self, query: Arguments) -> Any:
        """Answer `family`."""
        self.folder.scan(at_most_every=_SCAN)
        return family.family(self.folder, self.known(query))

    def answers(self) -> dict[str, Answer]:
        """Return what answers each question, by name."""
        return {
            "runs": self.runs,
            "totals": self.totals,
            "run": self.run,
            "columns": self.columns,
            "steps": self.steps,
            "find": self.find,
            "step": self.step,
            "changes": self.changes,
            "state": self.state,
            "value": self.value,
            "history": self.history,
            "search": self.search,
            "chat": self.chat,
            "compare": self.compare,
            "family": self.family,
        }


def make_app(viewer: Viewer, port: int) -> ASGIApp:
    """Return the server's application, guarded for this port."""

    async def events(request: Request) -> Response:
        name = request.query_params.get("id")
        try:
            if name is not None:
                await anyio.to_thread.run_sync(viewer.known, {"id": name})
        except ProblemError as problem:
            return _json(problem.to_dict(), problem.status)
        told = Events(viewer.folder, name, viewer.server, lambda: viewer.stopping)
        return StreamingResponse(
            told.stream(),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    def unknown(request: Request) -> Response:
        problem = ProblemError(404, "no_question", f"there is no {request.url.path}")
        return _json(problem.to_dict(), problem.status)

    routes = [
        *(
            Route(f"/api/{name}", _endpoint(answer, viewer), methods=["GET"])
            for name, answer in viewer.answers().items()
        ),
        Route("/api/events", events, methods=["GET"]),
        *([Route("/api/act/{name}", _acting(viewer.actions), methods=["POST"])] if viewer.actions is not None else []),
        Route("/api/{rest:path}", unknown, methods=["GET"]),
        Route("/{path:path}", client_file, methods=["GET"]),
    ]
    return Guard(Starlette(routes=routes), port)


def _endpoint(answer: Answer, viewer: Viewer) -> Callable[[Request], Response]:
    """Return the endpoint of one question; what goes wrong in reading a trace is an answer, too."""

    def endpoint(request: Request) -> Response:
        query = request.query_params
        try:
            for _ in range(_TRIES):
                try:
                    return _json(answer(query))
                except StaleIndexError:  # made anew, and asked again
                    for name in ("id", "a", "b"):
                        if name in query:
                            viewer.folder.forget(query[name])
            return _json(answer(query))
        except Exception as error:  # noqa: BLE001 - each becomes an answer; what nobody expects is logged
            problem = _problem(error)
            return _json(problem.to_dict(), problem.status)

    return endpoint


def _acting(actions: Actions) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of the actions: it takes them only with the token."""

    async def endpoint(request: Request) -> Response:
        if not actions.fits(request.headers.get("x-refold-token")):
            problem = ProblemError(403, "no_token", "open the address that the command printed: it has the token")
            return _json(problem.to_dict(), problem.status)
        act = actions.named(request.path_params["name"])
        try:
            if act is None:
                raise ProblemError(404, "no_action", f"there is no action {request.path_params['name']}")
            body = await _body(request)
            return _json(await anyio.to_thread.run_sync(act, body))
        except Exception as error:  # noqa: BLE001 - each becomes an answer; what nobody expects is logged
            problem = _problem(error)
            return _json(problem.to_dict(), problem.status)

    return endpoint


async def _body(request: Request) -> dict[str, Any]:
    """Return a request's JSON object; raises `ProblemError` if it is none, or too large."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise wrong("an action is sent as application/json")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > _BODY:
            raise wrong(f"an action has at most {_BODY} bytes")
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise wrong(f"the action is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise wrong("an action is a JSON object")
    return found


def _problem(error: Exception) -> ProblemError:
    """Return an error as the page is told it."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, IndexError):
        return ProblemError(404, "no_step", str(error))
    if isinstance(error, KeyError):
        return not_here(str(error.args[0]) if error.args else "")
    if isinstance(error, TraceLockedError):
        return ProblemError(409, "locked", str(error))
    if isinstance(error, TraceNotFoundError):
        return ProblemError(404, "no_trace", str(error))
    if isinstance(error, TraceCorruptError):
        return ProblemError(
            409, "damaged", str(error), "Run `refold trace check` on the file to see all that is wrong."
        )
    if isinstance(error, (TraceError, RefoldError)):
        return ProblemError(409, "unreadable", str(error))
    if isinstance(error, OSError):
        return ProblemError(409, "unreadable", f"the trace can't be read: {error.strerror}")
    _logger.error("a question could not be answered", exc_info=error)
    return ProblemError(500, "internal", f"the server failed: {type(error).__name__}", "Its log says more.")


def _number(query: Arguments, name: str, default: int | None = None) -> int:
    text = query.get(name)
    if text is None or text == "":
        if default is None:
            raise wrong(f"{name} is missing")
        return default
    if len(text) > 17 or not text.removeprefix("-").isdecimal() or not text.isascii():
        raise wrong(f"{name} is a whole number, not {text!r}")
    return int(text)


def _json(document: Any, status: int = 200) -> Response:
    return Response(
        orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS),
        status,
        headers={"cache-control": "no-store", "content-type": "application/json"},
    )
