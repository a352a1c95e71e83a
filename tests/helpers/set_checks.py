"""What must hold for a set of `toys.counting` that is done, whatever happened to it on the way."""

from collections import Counter
from pathlib import Path

from refold.modules.run_sets.table import all_rows
from refold.traces import Trace
from refold.traces.stores import TaskRow, open_store

STEPS = 8


def rows_of(where: Path) -> list[TaskRow]:
    store = open_store(where)
    try:
        return list(all_rows(store.tasks(where.name)))
    finally:
        store.close()


def lines(folder: Path) -> int:
    log = folder / "log"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def check(folder: Path, tasks: int) -> None:
    """Assert what holds for a set that is done, whatever happened to it."""
    rows = rows_of(folder / "set")
    assert len(rows) == tasks
    assert {row.status for row in rows} == {"completed"}
    total = str(sum(range(STEPS)))
    assert {(row.figures.result or {}).get("final_result") for row in rows} == {total}
    assert {(row.figures.result or {}).get("steps") for row in rows} == {STEPS + 1}
    called = Counter((folder / "log").read_text().splitlines())
    for row in rows:
        assert row.run_id is not None
        trace = Trace.load(folder / "set" / f"{row.run_id}.trace.jsonl")
        trace.check()
        assert sum(1 for record in trace.records if record.kind == "end" and record["status"] == "completed") == 1
        intents: Counter[str] = Counter()
        ended: Counter[str] = Counter()
        of = {}
        for record in trace.records:
            if record.kind == "intent" and record["name"].endswith("note"):
                of[record.seq] = f"{row.doc['task']['objective']} {record.step}"
                assert not ended[of[record.seq]], "an effect that ended was started again"
                intents[of[record.seq]] += 1
            elif record.kind == "outcome" and record["intent"] in of and not record.get("cancelled"):
                ended[of[record["intent"]]] += 1
        assert set(ended.values()) == {1}
        assert len(ended) == STEPS
        for call, count in intents.items():
            assert 1 <= called[call] <= count
