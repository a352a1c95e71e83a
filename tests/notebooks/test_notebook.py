"""Cells of a real notebook: runs in them, an interrupt, and what objects show of themselves."""

import os
import re
import textwrap
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from chromium import chromium
from nbclient import NotebookClient
from playwright.sync_api import Dialog

pytestmark = pytest.mark.slow

HOSTILE = "</pre></td><script>alert(1)</script><img src=x onerror=alert(1)>\" onclick='x' \u202e\x1b[31m javascript:a"
ALLOWED = {"div", "span", "b", "bdi", "table", "tbody", "tr", "td", "details", "summary", "pre"}

DEFINED = f"""
import asyncio, os, signal, threading
from refold import *
from refold.errors import UsageError
from refold.modules.agent import Agent
from refold.modules.agent.generators import ScriptedGenerator
HOSTILE = {HOSTILE!r}

class Odd(StateSchema):
    said: dict[str, str] = {{}}

async def say(text: str) -> str:
    print("said in the tool")
    await asyncio.sleep(0)
    return text

async def hang(text: str) -> str:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    await asyncio.sleep(600)
    return text

class Speaker(AgentModule[Odd]):
    tools = {{"say": say, "hang": hang}}
    def init_state(self, task: str):
        return Odd()
    def decide(self, state):
        if state.current_step:
            return Decision.final(HOSTILE)
        return Decision.act(Action("hang" if "hang" in state.task else "say", {{"text": HOSTILE}}), rationale=HOSTILE)
    def reduce(self, state, decision, observation):
        for each in observation.results:
            state.said[each.output] = each.output

engine = Engine(Speaker(), traces="runs")
"""


class Parts(HTMLParser):
    """The elements and attributes of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.styles: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.styles.update(value or "" for name, value in attrs if name == "style")

    def handle_data(self, data: str) -> None:
        self.text += data


def look_at(shown: str) -> list[str]:
    """Show HTML in Chromium; return what happened beside being shown."""
    happened: list[str] = []
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(240_000)

        def refuse(dialog: Dialog) -> None:
            happened.append(f"dialog {dialog.message}")
            dialog.dismiss()

        page.on("dialog", refuse)
        page.on("request", lambda request: happened.append(f"request {request.url}"))
        page.on("pageerror", lambda error: happened.append(f"script error {error}"))
        page.set_content(f"<!doctype html><body>{shown}</body>", wait_until="load")
        page.get_by_text("Trajectory").wait_for()
        page.frame_locator("iframe").get_by_text("completed").first.wait_for()
        page.frame_locator("iframe").locator("body").click()
        page.keyboard.press("j")
        page.frames[1].wait_for_function("location.hash.includes('k=')")
        assert page.locator("script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the layout holds"
    return happened


def test_a_notebook(tmp_path: Path) -> None:
    cells = {
        "defined": DEFINED,
        "result": "result = engine.run(HOSTILE); result",
        "twins": "(engine.verify(result.trace), engine.fork(result.trace, at=1).status.value, "
        "engine.resume(result.trace).status.value)",
        "awaited": "(await engine.arun('awaited')).status.value",
        "trace": "result.trace",
        "step": "result.trace.steps[0]",
        "view": "result.trace.view()",
        "decision": "Decision.act(Action('say', {'<i>': HOSTILE}), rationale=HOSTILE)",
        "state": "result.state",
        "trajectory": "Agent(name='agent', model=ScriptedGenerator([HOSTILE])).run_sync(HOSTILE)",
        "interrupted": """
            try:
                engine.run("hang")
            except KeyboardInterrupt as interrupt:
                print(interrupt.result.status.value, interrupt.result.trace.status)
        """,
        "after": "engine.run('again').status.value",
        "elsewhere": """
            async def inside():
                loop = asyncio.new_event_loop()
                async def call():
                    return engine.run("no")
                return await asyncio.to_thread(loop.run_until_complete, call())
            try:
                await inside()
            except UsageError as error:
                print(error)
        """,
    }
    make: Any = nbformat.v4
    book = make.new_notebook(cells=[make.new_code_cell(textwrap.dedent(each)) for each in cells.values()])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, __import__("sys").path))}
    client = NotebookClient(book, timeout=250, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env={**environment, "IPYTHONDIR": str(tmp_path / "ipython")})
    outputs: dict[str, list[Any]] = {name: cell.outputs for name, cell in zip(cells, book.cells, strict=True)}

    def printed(name: str) -> str:
        return "".join(each.text for each in outputs[name] if each.output_type == "stream" and each.name == "stdout")

    def data(name: str) -> Any:
        (shown,) = [each.data for each in outputs[name] if each.output_type == "execute_result"]
        return shown

    assert printed("result") == "said in the tool\n"
    assert data("twins")["text/plain"] == "([], 'completed', 'completed')"
    assert data("awaited")["text/plain"] == "'completed'"
    assert printed("interrupted") == "cancelled cancelled\n"
    assert data("after")["text/plain"] == "'completed'"
    assert "await engine.arun(...)" in printed("elsewhere")
    for name in ("result", "trace", "step", "decision", "state", "trajectory"):
        shown = data(name)
        parts = Parts(shown["text/html"])
        assert parts.tags <= ALLOWED, name
        assert parts.attributes <= {"style", "dir", "open"}, name
        assert "alert(1)" in parts.text, name
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", shown["text/html"]), name
        assert not any("url" in style or "expression" in style for style in parts.styles), name
        assert len(shown["text/html"]) < 20_000, name
        assert shown["text/plain"], name
    assert data("result")["text/plain"].startswith("<RunResult ")
    frame = Parts(data("view")["text/html"])
    assert (frame.tags, frame.attributes) == ({"iframe"}, {"sandbox", "src", "title", "style"})
    assert 'sandbox="allow-scripts"' in data("view")["text/html"]
    assert "allow-same-origin" not in data("view")["text/html"]
    shown = [data(name)["text/html"] for name in ("result", "trace", "view", "step", "decision", "state", "trajectory")]
    happened = look_at("".join(shown))
    assert happened == []
