"""No file tool of a run changes the store that keeps its trace, by any name, also from children; reading works."""

import os
from pathlib import Path
from typing import Any

import pytest

from refold import Action, AgentModule, Decision, Engine, Observation, StateSchema, run_child
from refold.modules.run_sets import run_set
from refold.modules.tools import (
    Workspace,
    apply_patch,
    delete_lines,
    edit_file,
    insert_lines,
    multiedit,
    read,
    use_workspace,
    write,
)

TOOLS = {each.name: each for each in (apply_patch, delete_lines, edit_file, insert_lines, multiedit, read, write)}


class Calls(StateSchema):
    results: list[str] = []


class Calling(AgentModule[Calls]):
    """Calls tools on paths; `{}` is this run's id."""

    tools = TOOLS

    def __init__(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        self.calls = calls

    def init_state(self, task: str) -> Calls:
        return Calls()

    def decide(self, state: Calls) -> Decision:
        if state.results:
            return Decision.final("\n".join(state.results))
        return Decision.act([Action(name, args) for name, args in self.calls], parallel=False)

    def reduce(self, state: Calls, decision: Decision, observation: Observation) -> None:
        state.results += [each.error or f"did {each.output}" for each in observation.results]


def attacks(path: str, text: str) -> list[tuple[str, dict[str, Any]]]:
    """Every tool that writes, on a file that has `text`."""
    begin, end = "*** Begin Patch\n", "\n*** End Patch"
    moved = f"*** Update File: note.txt\n*** Move to: {path}.blobs/x\n@@\n-note\n+x"
    return [
        ("write", {"file_path": path, "content": "{}"}),
        ("edit_file", {"path": path, "old_string": text, "new_string": "x"}),
        ("multiedit", {"path": path, "edits": [{"old_string": text, "new_string": "x"}]}),
        ("insert_lines", {"path": path, "line_number": 99, "content": "{}"}),
        ("delete_lines", {"path": path, "start_line": 1, "end_line": 1}),
        ("apply_patch", {"patch": f"{begin}*** Delete File: {path}{end}"}),
        (
            "apply_patch",
            {"patch": f"{begin}{moved}{end}"},
        ),
    ]


def run(calls: list[tuple[str, dict[str, Any]]], traces: Any, **options: Any) -> list[str]:
    workspace = Workspace(".", guard=False)
    with use_workspace(workspace):
        result = Engine(Calling(calls), traces=traces).run("go", **options)
    assert result.error is None, result.error
    assert not Engine(Calling(calls), traces=traces).verify(result.trace)
    return list(result.state.results)


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("note.txt").write_text("note\n")
    Path("runs").mkdir()
    Path("runs/old.trace.jsonl").write_text("old\n")


def all_refused(results: list[str], home: str) -> bool:
    return all(
        "which keeps this run's trace" in each and home in each and "Engine(traces=DIR)" in each for each in results
    )


@pytest.mark.parametrize("path", ["runs/old.trace.jsonl", "./note/../runs/old.trace.jsonl", "link/old.trace.jsonl"])
@pytest.mark.parametrize("traces", ["runs", "./runs/", "{}/runs"])
def test_no_tool_writes_into_a_folder_of_traces(path: str, traces: str, tmp_path: Path) -> None:
    Path("note").mkdir()
    Path("link").symlink_to("runs")
    results = run(attacks(path, "old"), traces.format(tmp_path))
    assert len(results) == 7
    assert all_refused(results, "runs"), results
    assert Path("runs/old.trace.jsonl").read_text() == "old\n"
    assert not list(Path("runs").glob("*.blobs"))


@pytest.mark.parametrize(
    "path", ["runs/new.txt", "runs/a/b/new.txt", "file-link", "runs/sets.sqlite-wal", "runs/x.branches/y.trace.jsonl"]
)
def test_no_tool_makes_a_file_in_a_folder_of_traces(path: str) -> None:
    Path("file-link").symlink_to("runs/new.txt")
    results = run([("write", {"file_path": path, "content": "x"})], "runs")
    assert all_refused(results, "runs"), results
    assert not Path("runs/a").exists()


@pytest.mark.parametrize("name", ["runs.db", "runs.db-wal", "runs.db-shm", "runs.db-journal", "RUNS.db-Journal"])
def test_no_tool_writes_to_a_database_of_traces(name: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    (result,) = run([("write", {"file_path": name, "content": "x"})], url)
    assert all_refused([result], "runs.db")
    (result,) = run([("write", {"file_path": f"other-{name}", "content": "x"})], url)
    assert result.startswith("did Wrote")


def test_a_workspace_that_is_the_store_keeps_its_other_files_writable() -> None:
    names = ["a.trace.jsonl", "a.blobs/0", "a.branches/b.trace.jsonl", "sets.sqlite", ".refold-index.sqlite"]
    results = run([("write", {"file_path": name, "content": "x"}) for name in names], ".")
    assert all_refused(results, "keeps this run's trace")
    assert run([("write", {"file_path": "src/main.py", "content": "x"})], ".")[0].startswith("did Wrote")
    assert run([("write", {"file_path": "main.py", "content": "x"})], "..")[0].startswith("did Wrote")


def test_a_hard_link_to_a_trace_does_not_lead_into_it() -> None:
    os.link("runs/old.trace.jsonl", "other.txt")
    run(attacks("other.txt", "old")[:4], "runs")
    assert Path("runs/old.trace.jsonl").read_text() == "old\n"


def test_reading_is_allowed_and_so_is_a_run_without_a_folder() -> None:
    assert run([("read", {"file_path": "runs/old.trace.jsonl"})], "runs")[0].startswith("did")
    assert run([("write", {"file_path": "runs/new.txt", "content": "x"})], None)[0].startswith("did Wrote")


class Parent(AgentModule[Calls]):
    """Calls the tools in a child."""

    def __init__(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        self.calls = calls

    def init_state(self, task: str) -> Calls:
        return Calls()

    async def decide(self, state: Calls) -> Decision:
        return Decision.final(str((await run_child(Calling(self.calls), "go")).final_result))

    def reduce(self, state: Calls, decision: Decision, observation: Observation) -> None:
        pass


@pytest.mark.parametrize("traces", ["runs", "sqlite:///runs/db"])
def test_no_tool_of_a_child_or_a_set_writes_into_the_store(traces: str) -> None:
    path = "runs/old.trace.jsonl" if traces == "runs" else "runs/db-wal"
    calls = [("write", {"file_path": path, "content": "x"})]
    with use_workspace(Workspace(".")):
        result = Engine(Parent(calls), traces=traces).run("go")
        assert all_refused([str(result.final_result)], "runs")
        told = run_set(Calling(calls), ["go"], traces, name="set", executor="inline")
    assert told.is_completed
    assert Path("runs/old.trace.jsonl").read_text() == "old\n"
