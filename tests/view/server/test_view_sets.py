"""Sets of runs, as the page is told of them; the table is data from a stranger."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from view_server import serving

from refold import Task
from refold.modules.examples.game_of_24 import GameOf24
from refold.modules.run_sets import run_set
from refold.modules.run_sets.shared_budget import SharedBudget
from refold.traces.stores import Figures, NewTask, open_store
from refold.traces.stores.folder.store import TASKS, FolderStore


def made(folder: Path, tasks: int = 5) -> None:
    store = FolderStore(folder)
    table = store.tasks("night / <b>")
    table.add(NewTask(f"t{n}") for n in range(tasks))
    done, failed, _ = table.claim("a worker", 3, 1e9)
    table.finish(done, "completed", Figures(score=1.0, cost=0.5, tokens=7, seconds=2.0, result={"final_result": "24"}))
    table.finish(failed, "failed", Figures(error="no"))
    store.close()


def test_a_set_and_its_tasks_in_pages(tmp_path: Path) -> None:
    made(tmp_path)
    with serving(tmp_path) as asking:
        (found,) = asking.get("sets")["sets"]
        assert found["id"] == "night / <b>"
        assert found["counts"] == {"completed": 1, "failed": 1, "queued": 2, "running": 1}
        assert (found["tasks"], found["score"], found["cost"], found["tokens"]) == (5, 1.0, 0.5, 7)
        assert found["unpriced"] == 1, "the failed task alone: what has not ended has no cost yet"
        first = asking.get("set", id="night / <b>", limit=3)
        rest = asking.get("set", id="night / <b>", limit=3, after=first["next"])
        assert [task["key"] for task in first["tasks"] + rest["tasks"]] == ["t0", "t1", "t2", "t3", "t4"]
        assert rest["next"] is None
        assert first["tasks"][0]["result"] == "24"
        assert first["tasks"][1]["error"] == "no"
        (running,) = asking.get("set", id="night / <b>", status=["running", "lost"])["tasks"]
        assert running["key"] == "t2"
        gone = asking.http.get("/api/set", params={"id": "another"})
        assert (gone.status_code, gone.json()["error"]["kind"]) == (404, "no_set")


@pytest.mark.parametrize("place", ["{}", "sqlite:///{}/runs.db"])
@pytest.mark.parametrize(("cost", "said"), [(0.5, None), (1.5, "1.5000 of 1 USD are spent, 0.5000 more than")])
def test_a_set_says_what_it_spent_beyond_its_limit(place: str, cost: float, said: str | None, tmp_path: Path) -> None:
    store = open_store(place.format(tmp_path))
    table = store.tasks("set")
    table.add([NewTask("t")])
    SharedBudget(table, "worker", 1.0).add(cost)
    with serving(tmp_path, store=None if place == "{}" else store) as asking:
        note = asking.get("set", id="set")["set"]["note"]
        assert note is None if said is None else note.startswith(said)
        table.put_document("money", {"accounts": {"x": {"held": 5}}, "limit": "?"}, 1)
        assert asking.get("set", id="set")["set"]["note"] is None
    store.close()


def test_a_folder_that_holds_only_folders_of_sets_shows_them(tmp_path: Path) -> None:
    tasks = [Task(id="one", objective="4 9 10 13")]
    for name in ("nightly", "weekly"):
        run_set(GameOf24(), tasks, tmp_path / name)
    made(tmp_path / "weekly", 3)
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / TASKS).write_bytes(b"hello" * 100)
    with serving(tmp_path) as asking:
        found = {each["id"]: each["tasks"] for each in asking.get("sets")["sets"]}
        assert found == {"nightly": 1, "weekly": 1, "weekly/night / <b>": 3}
        assert len(asking.get("runs")["rows"]) == 2
        (task,) = asking.get("set", id="nightly")["tasks"]
        assert asking.get("run", id=task["run"])["status"] == "completed"
        assert [each["key"] for each in asking.get("set", id="weekly/night / <b>")["tasks"]] == ["t0", "t1", "t2"]


def test_a_lease_that_ran_out_is_told(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.tasks("s").add([NewTask("t")])
    store.tasks("s").claim("a worker", 1, -1.0)
    store.close()
    with serving(tmp_path) as asking:
        assert asking.get("set", id="s")["tasks"][0]["status"] == "lost"


def test_without_sets_nothing_is_made(tmp_path: Path) -> None:
    with serving(tmp_path) as asking:
        assert asking.get("sets") == {"sets": []}
    assert not (tmp_path / TASKS).exists()


def _link(path: Path) -> None:
    made(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere" / TASKS)


def _view(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE real (a)")
        database.execute("CREATE VIEW tasks AS SELECT a AS set_id FROM real")


def _computed(path: Path) -> None:
    with sqlite3.connect(path) as database:
        plain = "set_id, place, attempts, run_id, grp, model, score, cost, tokens, seconds, error, result, changed"
        database.execute(f"CREATE TABLE tasks ({plain}, owner, lease_until, status)")
        database.executemany("INSERT INTO tasks (set_id, place) VALUES ('s', ?)", [(n,) for n in range(20)])
        # Added last, as each row that is written computes it.
        database.execute("ALTER TABLE tasks ADD COLUMN key TEXT AS (hex(zeroblob(100000000)))")


BAD: dict[str, Callable[[Path], object]] = {
    "a link": _link,
    "a folder": lambda path: path.mkdir(),
    "a pipe": lambda path: os.mkfifo(path),
    "no database": lambda path: path.write_bytes(b"hello" * 100),
    "a view": _view,
    "a computed column": _computed,
    "another database": lambda path: sqlite3.connect(path).execute("CREATE TABLE other (a)").connection.commit(),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_table_of_sets_is_refused_and_the_runs_are_shown(kind: str, tmp_path: Path) -> None:
    BAD[kind](tmp_path / TASKS)
    with serving(tmp_path) as asking:
        answer = asking.http.get("/api/sets")
        assert answer.status_code in (404, 409), answer.text
        assert TASKS in answer.json()["error"]["message"]
        assert asking.get("runs")["rows"] == []


@pytest.mark.parametrize("change", ["score = 'x'", "cost = 9e999", "tokens = x'00'", "result = '[1'", "place = 'far'"])
def test_a_set_with_values_of_other_types_is_refused(change: str, tmp_path: Path) -> None:
    made(tmp_path)
    with sqlite3.connect(tmp_path / TASKS) as database:
        database.execute(f"UPDATE tasks SET {change}")
    with serving(tmp_path) as asking:
        answer = asking.http.get("/api/set", params={"id": "night / <b>"})
        assert answer.status_code == 409
        assert "that refold did not write" in answer.json()["error"]["message"]
        assert asking.get("runs")["rows"] == []
