"""What the page starts: answers, forks, resumes, verification; real runs of real modules."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import pytest
from hostile_traces import read_docs, write_docs
from playwright.sync_api import Page, Route, expect
from shown_runs import EXAMPLES
from view_pages import Look, Site

from refold import Engine, RunResult, Trace
from refold.modules.examples.game_of_24 import GameOf24
from refold.tasks import load_task

LAST = "async id => (await (await fetch(`/api/run?id=${encodeURIComponent(id)}`)).json()).open"
"""The number of the step under way, in which the run asks."""


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    while not holds():
        time.sleep(0.01)


def agree(page: Page) -> None:
    """Say yes to the question before the module that the trace names is loaded."""
    asked = page.get_by_role("dialog", name="Run this module's code?")
    expect(asked).to_contain_text("PayInvoices")
    expect(asked.get_by_role("button", name="Cancel")).to_be_focused()
    asked.get_by_role("button", name="Run it").click()


def test_an_answer_is_given_in_a_form_of_its_schema(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "waiting", act=True))
    form = page.locator("form.form")
    expect(page.get_by_role("heading", name="Pay 700 € to Grace?")).to_be_visible()
    assert form.locator("input:checked").count() == 0
    form.get_by_role("button", name="Answer and resume").click()
    expect(form.get_by_text("Shall it be paid? choose yes or no.")).to_be_visible()
    expect(form.get_by_label("Yes")).to_be_focused()
    page.keyboard.press("Space")
    form.get_by_label(re.compile("Reason")).fill("It was <b>late</b>")
    form.get_by_role("button", name="As JSON").click()
    expect(form.get_by_label("The answer as JSON")).to_have_value(re.compile('"approved": true'))
    form.get_by_role("button", name="As a form").click()
    form.get_by_role("button", name="Answer and resume").click()
    agree(page)
    expect(page.get_by_role("heading", name="Pay 1200 € to Alan?")).to_be_visible()
    expect(form.get_by_label("Yes")).to_be_focused()  # the next question is gone to
    assert f"k={page.evaluate(LAST, acted.ids['waiting'])}" in page.url


def test_a_call_that_did_not_finish_is_asked_about_with_three_choices(looking: Look, acted: Site) -> None:
    def crash() -> RunResult:
        path = Engine(GameOf24(), traces=acted.folder).run(load_task(EXAMPLES / "game_of_24.yaml")).trace.path
        assert path is not None
        lines = path.read_bytes().splitlines(keepends=True)
        at = next(i for i, line in enumerate(lines) if line.startswith(b'{"kind":"intent"'))
        path.write_bytes(b"".join(lines[: at + 1]))
        return Engine(GameOf24()).resume(path)

    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(crash).result()
    page = looking(acted.at("run", run.run_id, act=True))
    said = 'combine(left="8", op="-", right="8") started before the crash and did not finish. Did it run?'
    expect(page.get_by_role("heading", name=said)).to_be_visible()
    form = page.locator("form.form")
    expect(form.get_by_role("radio")).to_have_count(3)
    form.get_by_label("It ran, with this result…").check()
    form.get_by_role("textbox", name="Result").fill('"0"')
    form.get_by_label("It failed…").check()
    expect(form.get_by_role("textbox", name="Error message")).to_be_visible()
    form.get_by_label("Run it again").check()
    expect(form.get_by_role("textbox")).to_have_count(0)
    expect(page.get_by_text('{"ran"')).to_have_count(0)
    form.get_by_role("button", name="Answer and resume").click()
    page.get_by_role("dialog", name="Run this module's code?").get_by_role("button", name="Run it").click()
    until(lambda: Trace.load(acted.folder / f"{run.run_id}.trace.jsonl").status == "completed")


def test_a_fork_is_made_from_an_edited_value_and_opens_beside_its_source(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "game", k=2, act=True))
    page.get_by_role("button", name=re.compile("Fork from here")).click()
    dialog = page.get_by_role("dialog", name="Fork this run")
    dialog.get_by_label("Path").fill("/hands/0/tried")
    page.keyboard.press("Tab")
    value = dialog.get_by_label("New value")
    expect(value).not_to_have_value("")
    value.fill("7")
    expect(dialog.locator("ins")).to_have_text("7")
    expect(dialog.locator(".cmd code")).to_contain_text("--set /hands/0/tried=7")
    dialog.get_by_label("Path").fill("/current_step")
    page.keyboard.press("Tab")
    expect(dialog.get_by_text("The engine writes this field")).to_be_visible()
    dialog.get_by_label("Path").fill("/hands/0/tried")
    page.keyboard.press("Tab")
    expect(value).not_to_have_value("")
    value.fill("7")
    dialog.get_by_role("button", name="Fork and run").click()
    asked = page.get_by_role("dialog", name="Run this module's code?")
    asked.get_by_role("button", name="Run it").click()
    expect(page.get_by_role("heading", name=re.compile("Changed by the fork"))).to_be_visible()
    assert "/compare/" in page.url


def test_a_number_is_sent_as_it_was_typed(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "fork of fork", k=0, act=True))  # nobody has said yes to running this one
    page.get_by_role("button", name=re.compile("Fork from here")).click()
    dialog = page.get_by_role("dialog", name="Fork this run")
    dialog.get_by_label("Path").fill("/metadata")
    page.keyboard.press("Tab")
    dialog.get_by_label("New value").fill('{"id": 9007199254740993, "rate": 1.0, "said": "9007199254740993"}')
    typed = '{"id":9007199254740993,"rate":1.0,"said":"9007199254740993"}'
    expect(dialog.locator(".cmd code")).to_contain_text(f"--set '/metadata={typed}'")
    with page.expect_request("**/api/act/fork") as sent:
        dialog.get_by_role("button", name="Fork and run").click()
        page.get_by_role("dialog", name="Run this module's code?").get_by_role("button", name="Run it").click()
    assert f'"value":{typed}' in (sent.value.post_data or "")
    page.wait_for_url("**/compare/**")
    expect(page.get_by_role("heading", name=re.compile("Changed by the fork"))).to_be_visible()


SELECTED_AS_SOON_AS_IT_STANDS = """(field) => {
    const { get, set } = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value")
    Object.defineProperty(field, "value", {
        get() { return get.call(this) },
        set(value) {
            set.call(this, value)
            queueMicrotask(() => (window.found = { value, selected: [this.selectionStart, this.selectionEnd] }))
        },
    })
}"""


def test_a_value_that_comes_while_somebody_begins_to_type_is_replaced(looking: Look, acted: Site) -> None:
    """It stands and is selected at once: a key that is pressed in between would be added to it."""
    page = looking(acted.at("run", "game", k=2, act=True))
    page.get_by_role("button", name=re.compile("Fork from here")).click()
    dialog = page.get_by_role("dialog", name="Fork this run")
    held: list[Route] = []
    page.route("**/api/state?**", lambda route: held.append(route))
    dialog.get_by_label("Path").fill("/hands/0/tried")
    with page.expect_request("**/api/state?**"):
        page.keyboard.press("Tab")
    field = dialog.get_by_label("New value")
    expect(field).to_be_focused()
    field.evaluate(SELECTED_AS_SOON_AS_IT_STANDS)
    (route,) = held
    route.continue_()
    expect(field).not_to_have_value("")
    found = page.evaluate("window.found")
    assert found["selected"] == [0, len(found["value"])]


@pytest.mark.parametrize("browser_is_old", [False, True])
def test_what_nobody_has_typed_stays_as_the_trace_has_it(looking: Look, acted: Site, browser_is_old: bool) -> None:
    """In a value that is edited as a whole, numbers keep their digits, kind and sign, and members their order."""
    numbers = [[1e16, {"x": 2.0, "n": 1}], 1e21, 0.1, -0.0]
    held = {"b": 1.0, "2": -0.0, "id": 9007199254740993, "low": -(2**63), "text": "1.0 , 2", "__proto__": numbers}
    source = acted.folder / f"{acted.ids['game']}.trace.jsonl"
    engine = Engine(GameOf24(), traces=acted.folder)
    with ThreadPoolExecutor(1) as pool:  # Playwright has an event loop in this thread
        made = pool.submit(engine.fork, source, 2, {"/metadata": held}).result()
    page = looking(acted.at("run", "game", k=0, act=True).replace(acted.ids["game"], made.run_id))
    if browser_is_old:
        page.evaluate("delete JSON.rawJSON")
    page.get_by_role("button", name=re.compile("Fork from here")).click()
    dialog = page.get_by_role("dialog", name="Fork this run")
    dialog.get_by_label("Path").fill("/metadata")
    page.keyboard.press("Tab")
    value = dialog.get_by_label("New value")
    text = json.dumps(held, separators=(",", ":"))
    expect(value).to_have_value(text)
    expect(dialog.locator(".cmd code")).not_to_contain_text("--set")
    value.fill(text.replace('"n":1}', '"n": 3}'))
    dialog.get_by_role("button", name="Fork and run").click()
    asked = page.get_by_role("dialog", name="Run this module's code?")
    asked.or_(page.get_by_text("Changed by the fork")).first.wait_for()
    if asked.is_visible():  # once for each server
        asked.get_by_role("button", name="Run it").click()
    page.wait_for_url("**/compare/**")
    forked = acted.folder / f"{unquote(page.url.rpartition('/')[2].partition('?')[0])}.trace.jsonl"
    numbers[0][1]["n"] = 3  # type: ignore[index]
    until(lambda: forked.exists() and len(Trace.load(forked).records) > 1)
    assert json.dumps(Trace.load(forked).state(0)["metadata"]) == json.dumps(held)


@pytest.mark.parametrize("number", ["9007199254740993", "1.0", "1e2"])
def test_an_old_browser_refuses_to_answer_with_a_number_that_it_would_change(
    number: str, looking: Look, acted: Site
) -> None:
    page = looking(acted.at("run", "waiting", act=True))
    page.evaluate("delete JSON.rawJSON")
    form = page.locator("form.form")
    form.get_by_role("button", name="As JSON").click()
    form.get_by_label("The answer as JSON").fill(f'{{"approved": true, "reason": {number}}}')
    form.get_by_role("button", name="Answer and resume").click()
    expect(form).to_contain_text("has a number that this browser cannot send exactly")


def test_saying_no_runs_nothing(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "search", act=True))
    page.get_by_role("button", name="Verify").click()
    asked = page.get_by_role("dialog", name="Run this module's code?")
    expect(asked.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(asked).to_have_count(0)
    expect(page.get_by_role("button", name="Verify")).to_be_focused()
    expect(page.get_by_text("Verified")).to_have_count(0)


def test_verify_says_that_all_is_as_it_was(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "fork", act=True))
    page.get_by_role("button", name="Verify").click()
    page.get_by_role("dialog").get_by_role("button", name="Run it").click()
    expect(page.get_by_text(re.compile("Verified"))).to_be_visible()


def test_verify_shows_the_first_divergence_in_place(looking: Look, acted: Site) -> None:
    docs = read_docs(acted.folder / f"{acted.ids['game']}.trace.jsonl")
    docs[0]["run_id"] = "diverged"
    next(doc for doc in docs if doc["kind"] == "decide" and doc["step"] == 2)["decision"]["rationale"] = "a guess"
    path = acted.folder / "diverged.trace.jsonl"
    write_docs(path, docs)
    page = looking(acted.at("run", "diverged", k=0, act=True))
    page.get_by_role("button", name="Verify").click()
    page.get_by_role("dialog").get_by_role("button", name="Run it").click()
    found = page.get_by_role("region", name="First divergence")
    expect(found.get_by_role("heading", name="First divergence: step 2, decide")).to_be_visible()
    expect(found).to_contain_text("a guess")
    expect(found).to_contain_text("move 3 of 13")
    found.get_by_role("button", name="Go to step 2").click()
    expect(page.get_by_role("heading", name="Step 2", exact=True)).to_be_visible()
    page.close()  # otherwise it asks for the run that is gone
    path.unlink()


def test_a_run_that_was_cut_off_is_resumed_without_its_files(looking: Look, acted: Site, tmp_path: Path) -> None:
    docs = read_docs(acted.folder / f"{acted.ids['game']}.trace.jsonl")
    docs[0]["run_id"] = "cut"
    docs[0]["task"]["env_spec"] = {"type": "scratch", "config": {"source": str(tmp_path)}}
    third = [number for number, doc in enumerate(docs) if doc["kind"] == "commit"][2]
    path = acted.folder / "cut.trace.jsonl"
    lost = {"environment": "scratch", "files": ["notes.md"], "count": 1}
    event = {**docs[third], "kind": "event", "name": "environment_files_lost", "data": lost}
    write_docs(path, [*docs[: third + 1], {name: event[name] for name in ("kind", "step", "at", "name", "data")}])
    page = looking(acted.at("run", "cut", act=True), refused=True)
    expect(page.locator(".head .status")).to_have_text("interrupted")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Run it").click()
    asked = page.get_by_role("dialog", name="Go on without these files?")
    expect(asked).to_contain_text("notes.md")
    asked.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("notes.md")
    page.get_by_role("button", name="Resume").click()
    asked.get_by_role("button", name="Go on without them").click()
    expect(page.locator(".head .status")).to_have_text("completed")
    expect(page.get_by_role("button", name="Resume")).to_have_count(0)
    expect(page.locator(".facts")).to_contain_text("resumed once")
    expect(page.locator(".st")).to_have_count(12)  # the summary, and as many steps as the whole run has
    path.unlink()


def test_a_value_that_nobody_changed_is_that_of_the_chosen_state(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "game", k=1))
    page.get_by_role("button", name=re.compile("Fork from here")).click()
    dialog = page.get_by_role("dialog", name="Fork this run")
    dialog.get_by_label("Path").fill("/hands/0/tried")
    page.keyboard.press("Tab")
    value, command = dialog.get_by_label("New value"), dialog.locator(".cmd code")
    expect(value).to_have_value("2")
    dialog.get_by_role("radio", name=re.compile("before step 1")).check()
    expect(value).to_have_value("1")
    expect(command).to_contain_text("--at 1 ")
    expect(command).not_to_contain_text("--set")
    dialog.get_by_label("Path").focus()
    page.keyboard.press("Tab")
    page.keyboard.type("8")  # in place of what was filled in
    expect(value).to_have_value("8")
    dialog.get_by_role("radio", name=re.compile("after step 1")).check()
    expect(command).to_contain_text("--set /hands/0/tried=8")


def test_the_command_for_an_agent_made_in_python_has_a_place_for_it(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "research", k=1))
    page.get_by_role("button", name=re.compile("Fork from here")).click()
    command = page.get_by_role("dialog", name="Fork this run").locator(".cmd code")
    expect(command).to_contain_text("trace.jsonl --module MODULE:NAME --at")


def test_without_a_token_the_page_shows_a_command_that_works(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "game", k=1))
    page.get_by_role("button", name="Verify").click()
    verify = page.get_by_role("dialog", name="Verify this run")
    expect(verify.get_by_text("This tab has no token, so it only shows.")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("Fork from here")).click()
    dialog = page.get_by_role("dialog", name="Fork this run")
    expect(dialog.get_by_role("button", name="Fork and run")).to_have_count(0)
    dialog.get_by_role("radio", name=re.compile("before step 1")).check()
    dialog.get_by_label("Path").fill("/hands/0/tried")
    page.keyboard.press("Tab")
    value = dialog.get_by_label("New value")
    expect(value).to_have_value("1")
    value.fill("7")
    command = dialog.locator(".cmd code")
    expect(command).to_contain_text("--at 1 ")
    expect(command).to_contain_text("--set /hands/0/tried=7")
    before = set(acted.folder.glob("*.jsonl"))
    pasted = subprocess.run(  # the folder is not called runs, and the shell stands elsewhere
        ["bash", "-c", command.inner_text()],
        env={**os.environ, "REFOLD_YES": "1", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        cwd=Path.cwd(),
        capture_output=True,
        text=True,
    )
    assert pasted.returncode == 0, pasted.stderr
    (made,) = set(acted.folder.glob("*.jsonl")) - before
    assert read_docs(made)[0]["parent"]["step"] == 1
    made.unlink()
