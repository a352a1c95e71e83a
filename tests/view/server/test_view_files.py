"""Damaged, foreign, hostile and changing files: each is a row with a problem, and no question fails."""

import contextlib
import os
import random
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from hostile_traces import mutate, read_docs, write_docs
from view_server import Asking, serving

from refold import Trace
from refold.traces.index import database
from refold.traces.index.indexed import IndexedTrace

QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("run", {}),
    ("columns", {"from": 0, "to": 100, "n": 10}),
    ("steps", {"from": 0, "to": 100}),
    ("step", {"k": 0}),
    ("step", {"k": 2}),
    ("changes", {"k": 1}),
    ("state", {"k": 0, "path": ""}),
    ("state", {"k": -1, "path": ""}),
    ("history", {"path": "/said"}),
    ("search", {"q": "note"}),
    ("chat", {"from": 0, "to": 50}),
    ("family", {}),
    ("find", {"from": 0, "mode": "EWBF."}),
)


def ask_everything(asking: Asking, row: dict[str, Any], other: str) -> set[int]:
    found = {asking.http.get(f"/api/{name}", params={"id": row["id"], **q}).status_code for name, q in QUESTIONS}
    found.add(asking.http.get("/api/compare", params={"a": row["id"], "b": other, "n": 10}).status_code)
    return found


def test_mutated_traces_are_answered_without_a_failure(recorded: dict[str, Path], tmp_path: Path) -> None:
    draw = random.Random(7)
    for number in range(int(os.environ.get("REFOLD_HOSTILE_TRACES", "25"))):
        path = recorded[draw.choice(["plain", "resumed", "branching", "asking", "agent", "forked"])]
        docs = read_docs(path)
        mutate(docs, draw)
        write_docs(tmp_path / f"m{number}.trace.jsonl", docs)
    shutil.copy(recorded["plain"], tmp_path)
    with serving(tmp_path) as asking:
        rows = asking.get("runs", flat="true", limit=500)["rows"]
        assert len(rows) == len(list(tmp_path.glob("*.trace.jsonl")))
        good = Trace.load(recorded["plain"]).run_id
        for row in rows:
            found = ask_everything(asking, row, good)
            assert found <= {200, 404, 409}, (row["file"], row["problem"], found)


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("empty", b"", "interrupted"),
        ("half", b'{"kind":"header","se', "interrupted"),
        ("text", b"hello\nworld\n", "damaged"),
        ("nul", b"\0" * 1000, "damaged"),
        ("json", b'{"a":1}\n', "damaged"),
        ("other", b'{"kind":"commit","seq":0,"step":0,"at":1,"hash":"' + b"0" * 32 + b'"}\n', "damaged"),
    ],
)
def test_files_that_are_no_traces_are_rows(tmp_path: Path, name: str, content: bytes, status: str) -> None:
    (tmp_path / f"{name}.trace.jsonl").write_bytes(content)
    with serving(tmp_path) as asking:
        (row,) = asking.get("runs")["rows"]
        assert (row["id"], row["status"]) == (name, status)
        assert row["problem"]
        assert asking.http.get("/api/run", params={"id": name}).status_code == 409


def test_a_trace_cut_at_any_record_is_shown_as_far_as_it_goes(recorded: dict[str, Path], tmp_path: Path) -> None:
    data = recorded["resumed"].read_bytes()
    ends = [at for at in range(len(data)) if data[at : at + 1] == b"\n"]
    for number, end in enumerate(ends):
        torn = b'{"kind":"comm' if number % 2 else b""
        (tmp_path / f"c{number}.trace.jsonl").write_bytes(data[: end + 1] + torn)
    with serving(tmp_path) as asking:
        rows = asking.get("runs", flat="true", limit=500)["rows"]
        assert len(rows) == len(ends)
        for row in rows:
            trace = Trace.load(tmp_path / row["file"])
            run = asking.get("run", id=row["id"])
            assert (run["steps"], run["problem"]) == (trace.step_count, None)
            assert len(run["requests"]) == len(trace.waiting)
            for k in range(run["steps"] + (run["open"] is not None)):
                assert asking.get("step", id=row["id"], k=k)["committed"] is (k < run["steps"])


def test_a_flipped_byte_is_a_problem_of_its_run_alone(recorded: dict[str, Path], tmp_path: Path) -> None:
    docs = read_docs(recorded["plain"])
    at = next(number for number, doc in enumerate(docs) if doc["kind"] == "commit" and doc["step"] == 1)
    docs[at]["patch"][0]["path"] = "/nowhere/0"
    write_docs(tmp_path / "bad.trace.jsonl", docs)
    with serving(tmp_path) as asking:
        (row,) = asking.get("runs")["rows"]
        run = asking.get("run", id=row["id"])
        assert run["status"] == "damaged"
        assert "patch does not fit" in run["problem"]
        assert asking.get("step", id=row["id"], k=0)["committed"]
        assert asking.http.get("/api/step", params={"id": row["id"], "k": 3}).status_code == 404


def test_the_state_that_a_child_starts_from_is_not_read_through_a_link(
    recorded: dict[str, Path], tmp_path: Path
) -> None:
    root = recorded["branching"]
    below = root.with_name(root.name.removesuffix(".trace.jsonl") + ".branches")
    shutil.copytree(below, tmp_path / below.name)
    (child, *_) = sorted(below.iterdir())
    name = Trace.load(child).run_id

    def state() -> int:
        with serving(tmp_path) as asking:
            return asking.http.get("/api/state", params={"id": name, "k": 0, "path": ""}).status_code

    (tmp_path / root.name).symlink_to(root)
    assert state() in (404, 409)
    (tmp_path / root.name).unlink()
    assert state() in (404, 409)
    shutil.copy(root, tmp_path)
    assert state() == 200


# the index


def copied(recorded: dict[str, Path], folder: Path, name: str = "plain") -> Path:
    shutil.copytree(recorded[name].parent, folder, ignore=shutil.ignore_patterns(".refold*"), dirs_exist_ok=True)
    return folder / recorded[name].name


def test_a_second_start_takes_everything_from_the_index(
    recorded: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copied(recorded, tmp_path)
    name = Trace.load(path).run_id
    with serving(tmp_path) as asking:
        first = asking.get("runs"), asking.get("run", id=name), asking.get("steps", id=name, from_=0, to=9)
    assert (tmp_path / database.NAME).is_file()
    read: list[str] = []
    monkeypatch.setattr("refold.traces.index.folder.read_row", lambda *given, **options: read.append("row"))
    taken = IndexedTrace._extend
    fed: list[int] = []

    def extend(self: IndexedTrace, walk: Any) -> None:
        before = walk.k
        taken(self, walk)
        fed.append(walk.k - before)

    monkeypatch.setattr(IndexedTrace, "_extend", extend)
    with serving(tmp_path) as asking:
        again = asking.get("runs"), asking.get("run", id=name), asking.get("steps", id=name, from_=0, to=9)
    assert again == first
    assert read == []
    assert fed == [0]


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"\1" * 4096, b""])
def test_a_foreign_index_is_made_anew(recorded: dict[str, Path], tmp_path: Path, content: bytes) -> None:
    copied(recorded, tmp_path)
    (tmp_path / database.NAME).write_bytes(content)
    with serving(tmp_path) as asking:
        assert asking.get("runs")["total"] == 1
    with sqlite3.connect(tmp_path / database.NAME) as index:
        assert index.execute("SELECT count(*) FROM runs").fetchone() == (2,)


def test_an_index_of_another_make_is_made_anew(recorded: dict[str, Path], tmp_path: Path) -> None:
    copied(recorded, tmp_path)
    with sqlite3.connect(tmp_path / database.NAME) as index:
        index.execute("CREATE TABLE runs (file TEXT)")
        index.execute("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END")
        index.execute(f"PRAGMA user_version = {database._VERSION}")
        index.execute(f"PRAGMA application_id = {database._APPLICATION}")
    with serving(tmp_path) as asking:
        assert asking.get("runs")["total"] == 1
    with sqlite3.connect(tmp_path / database.NAME) as index:
        assert index.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone() == (0,)


@pytest.mark.parametrize(
    "lie",
    [
        "UPDATE steps SET start = start + 7",
        "UPDATE steps SET commit_at = 0, stop = 90",
        "UPDATE steps SET k = k + 1 WHERE k = 3",
        "DELETE FROM steps WHERE k = 1",
        "UPDATE snapshots SET offset = offset + 3",
        "UPDATE snapshots SET writers = x'00'",
        "DELETE FROM snapshots",
        "UPDATE traces SET state = '[]'",
        "UPDATE traces SET state = replace(state, '\"k\":4', '\"k\":2')",
        "UPDATE runs SET row = '{}'",
        'UPDATE runs SET row = replace(row, \'"steps":4\', \'"steps":"x"\')',
    ],
)
def test_an_index_that_lies_is_found_out(recorded: dict[str, Path], tmp_path: Path, lie: str) -> None:
    path = copied(recorded, tmp_path)
    trace = Trace.load(path)
    name = trace.run_id

    def told(asking: Asking) -> Any:
        asking.get("runs")
        run = asking.get("run", id=name)
        steps = [asking.get("step", id=name, k=k) for k in range(trace.step_count)]
        states = [asking.get("state", id=name, k=k, path="") for k in range(trace.step_count + 1)]
        return run, steps, states, asking.get("runs")["rows"]

    with serving(tmp_path) as asking:
        truth = told(asking)
    with sqlite3.connect(tmp_path / database.NAME) as index:
        assert index.execute(lie).rowcount > 0
    with serving(tmp_path) as asking:
        assert told(asking) == truth


def test_a_link_in_the_indexs_place_is_left_alone(
    recorded: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "runs"
    copied(recorded, folder)
    precious = tmp_path / "precious.sqlite"
    precious.write_bytes(b"precious")
    (folder / database.NAME).symlink_to(precious)
    with serving(folder) as asking:
        assert asking.get("runs")["total"] == 1
    assert precious.read_bytes() == b"precious"
    assert len(list((tmp_path / "cache" / "refold").glob("index-*.sqlite"))) == 1


def test_another_file_under_the_same_name_is_read_anew(recorded: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "same.trace.jsonl"
    shutil.copy(recorded["plain"], path)
    with serving(tmp_path) as asking:
        (row,) = asking.get("runs", flat="true")["rows"]
        assert asking.get("run", id=row["id"])["steps"] == 4
        shutil.copy(recorded["resumed"], tmp_path / "new")
        os.replace(tmp_path / "new", path)
        assert asking.get("run", id=row["id"])["steps"] == Trace.load(path).step_count
        path.write_bytes(recorded["resumed"].read_bytes()[:5000])
        answer = asking.http.get("/api/run", params={"id": row["id"]})
        assert answer.json()["steps"] == Trace.load(path).step_count
        path.unlink()
        assert asking.http.get("/api/step", params={"id": row["id"], "k": 0}).status_code in (200, 404)


def test_two_viewers_share_an_index_that_loses_rows(recorded: dict[str, Path], tmp_path: Path) -> None:
    path = copied(recorded, tmp_path)
    trace = Trace.load(path)
    name = trace.run_id
    with serving(tmp_path) as one, serving(tmp_path) as other:
        truth = [one.get("state", id=name, k=k, path="") for k in range(trace.step_count + 1)]
        wrong: list[Any] = []

        def look(asking: Asking) -> None:
            with httpx.Client(base_url=f"http://127.0.0.1:{asking.port}", timeout=60) as http:
                for number in range(40):
                    k = number % len(truth)
                    answer = http.get("/api/state", params={"id": name, "k": k, "path": ""})
                    if answer.status_code != 200 or answer.json() != truth[k]:
                        wrong.append(answer.text)

        threads = [threading.Thread(target=look, args=(asking,)) for asking in (one, other, one, other)]
        for thread in threads:
            thread.start()
        with contextlib.closing(sqlite3.connect(tmp_path / database.NAME, timeout=30)) as index:
            for _ in range(5):
                for table in ("steps", "snapshots", "traces"):
                    index.execute(f"DELETE FROM {table}")
                    index.commit()
        for thread in threads:
            thread.join()
        assert wrong == []
