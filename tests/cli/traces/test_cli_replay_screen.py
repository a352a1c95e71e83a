"""The full screen of a replay: keys move all panes, the state shows what changed, and text of a run stays text."""

import asyncio
import io
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from textual.widgets import Static

from refold.cli.tui.app import ReplayApp
from refold.cli.tui.cursor import Cursor, overview
from refold.cli.tui.state_tree import StateTree
from refold.traces import Trace

Pressed = Callable[[ReplayApp, Callable[..., Awaitable[Any]]], Awaitable[None]]


@pytest.fixture
def failing(lab: Path, refold: Any) -> Path:
    """The trace of a run whose calls fail with hostile text."""
    return Path(refold("run", "agents:Refused", "count", "--seed", 1, "--json").doc["trace"])


def played(path: Path, keys: Pressed) -> None:
    """Drive the screen of a replay."""

    async def play() -> None:
        app = ReplayApp(Trace.load(path))
        async with app.run_test(size=(140, 40)) as pilot:

            async def press(*names: str) -> None:
                await pilot.press(*names)
                await pilot.pause()

            await pilot.pause()
            await keys(app, press)

    asyncio.run(play())


def shown(app: ReplayApp) -> str:
    """The lines of the step."""
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(app.query_one("#lines", Static).content)
    return console.export_text()


def labels(app: ReplayApp) -> list[str]:
    tree = app.query_one(StateTree)
    return [str(tree.get_node_at_line(line).label) for line in range(tree.last_line + 1)]  # type: ignore[union-attr]


def test_keys_move_all_panes(trace: Path) -> None:
    async def keys(app: ReplayApp, press: Any) -> None:
        assert "the beginning" in shown(app)
        await press("j", "j")
        assert app.cursor.page == 2
        assert "step 1" in shown(app)
        assert labels(app)[:3] == ["what changed", "~ /n", "− 1"]
        await press("t")
        assert "~ n  2" in labels(app)
        assert any(label.startswith("· notes") for label in labels(app)), "a branch leads to a change"
        await press("end")
        assert "completed" in shown(app)
        await press("k", "K", "home", "k")
        assert app.cursor.page == 0
        await press("g", "2", "enter")
        assert app.cursor.page == 3
        assert "final" in shown(app)
        await press("g", "9", "enter")
        assert app.cursor.page == 3
        assert "there is no step 9" in str(app.query_one("#foot", Static).content)
        await press("q")
        assert app.return_code == 0

    played(trace, keys)


def test_search_and_the_changes_of_a_path(trace: Path) -> None:
    async def keys(app: ReplayApp, press: Any) -> None:
        await press("slash", *"counted", "enter")
        assert app.cursor.page == 3
        await press("slash", *"nowhere", "enter")
        assert "was not found" in str(app.query_one("#foot", Static).content)
        await press("s", "t", "tab", "tab")
        tree = app.query_one(StateTree)
        assert app.focused is tree
        while tree.path != "/n":
            await press("down")
        await press("right_square_bracket")
        assert app.cursor.page == 1
        await press("right_square_bracket", "right_square_bracket")
        assert app.cursor.page == 2
        assert tree.path == "/n", "the cursor stays on its path"
        await press("left_square_bracket")
        assert app.cursor.page == 1

    played(trace, keys)


def test_errors_are_found_and_hostile_text_is_text(failing: Path) -> None:
    async def keys(app: ReplayApp, press: Any) -> None:
        await press("e")
        assert app.cursor.page == 1
        assert "not [bold]now[/bold] \\u001b[31m\\u202e" in " ".join(shown(app).split())
        await press("e")
        assert app.cursor.page == 2
        await press("e")
        assert "there is no error below" in str(app.query_one("#foot", Static).content)
        await press("E", "t")
        assert not any("\x1b" in label or "\u202e" in label for label in labels(app))

    played(failing, keys)


def test_the_overview_shows_the_rarest_sign(failing: Path, trace: Path) -> None:
    assert overview(Cursor(Trace.load(trace)), 80) == "..F"
    assert overview(Cursor(Trace.load(failing)), 2) == "EE"


@pytest.mark.parametrize("records", [1, 4, 5])
def test_a_run_that_hardly_began(trace: Path, records: int) -> None:
    trace.write_bytes(b"".join(trace.read_bytes().splitlines(keepends=True)[:records]))

    async def keys(app: ReplayApp, press: Any) -> None:
        await press("j", "end", "t", "e", "g", "1", "enter")
        assert app.cursor.page == app.cursor.last

    played(trace, keys)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such terminals")
@pytest.mark.parametrize(("how", "code"), [("q", 0), ("\x03", 130), (signal.SIGTERM, 143)])
def test_a_terminal_is_given_back(terminal: Any, trace: Path, how: str | int, code: int) -> None:
    screen = terminal("replay", trace, columns=120)
    screen.wait_for("summary")
    screen.type("j")
    screen.wait_for("because")
    if isinstance(how, str):
        screen.type(how)
    else:
        screen.process.send_signal(how)
    assert screen.end() == code
    assert screen.mode() == screen.before
    assert "\x1b[?1049l" in screen.written
