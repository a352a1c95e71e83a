"""Texts of any length in any place of a record: an answer has a part of each."""

import sqlite3
from pathlib import Path
from typing import Any

import orjson
from hostile_traces import write_run
from view_server import serving

from refold.traces.stores import NewTask
from refold.traces.stores.folder.store import FolderStore

LONG = "w" * 1_000_000
ROOM = 200_000
"""Bytes of one answer about a step or a list, whatever its texts are."""


def test_an_answer_is_small_however_long_the_texts_are(tmp_path: Path) -> None:
    task = {"id": LONG, "objective": LONG, "inputs": {}, "metadata": {"tags": [LONG]}}
    decision: dict[str, Any] = {
        "mode": "act",
        "rationale": LONG,
        "actions": [{"id": "a", "name": LONG, "args": {"x": LONG}}],
    }
    error = {"type": LONG, "message": LONG, "traceback": LONG}
    call = {"kind": "intent", "phase": "act", "name": LONG, "action": "a", "digest": "0" * 16, "n": 0, "key": "k"}
    records: list[dict[str, Any]] = [
        {"kind": "decide", "decision": decision},
        call,
        {"kind": "outcome", "intent": 3, "error": error},
    ]
    asked = {"id": "w", "prompt": LONG, "kind": "wait", "schema": None}
    waits: list[dict[str, Any]] = [
        {"kind": "decide", "decision": {"mode": "wait", "prompt": LONG}},
        {"kind": "wait", "requests": [asked]},
    ]
    write_run(tmp_path / "a.trace.jsonl", {}, records, waits, task=task, module=f"m:{LONG}")
    ended: dict[str, Any] = {"kind": "end", "status": "failed", "stop_reason": LONG, "error": error}
    write_run(tmp_path / "b.trace.jsonl", {"messages": []}, [*records, ended])
    with serving(tmp_path) as asking:
        sizes = {
            (name, run, k): len(asking.http.get(f"/api/{name}", params={"id": run, "k": k, "from": 0, "to": 9}).content)
            for name in ("runs", "steps", "step", "chat", "family")
            for run in ("a", "b")
            for k in (0, 1)
        }
        assert {key: size for key, size in sizes.items() if size > ROOM} == {}
        step = asking.get("step", id="a", k=0)
        assert step["decision"]["rationale"] == LONG[:20_000] + "… (980,000 more characters)"
        assert len(step["calls"][0]["error"]["message"]) == len(step["decision"]["rationale"])
        assert asking.get("runs", module="m:" + LONG[:238])["total"] == 1


def test_statuses_of_a_set_are_counted_apart_up_to_twenty(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.tasks("s").add(NewTask(f"t{n}") for n in range(3_000))
    store.close()
    with sqlite3.connect(tmp_path / "sets.sqlite") as database:
        database.execute("UPDATE tasks SET status = 'strange ' || place WHERE place % 10")
    with serving(tmp_path) as asking:
        counts = orjson.loads(asking.http.get("/api/sets").content)["sets"][0]["counts"]
        assert (len(counts), counts["queued"], sum(counts.values())) == (21, 300, 3_000)
