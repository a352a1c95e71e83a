"""Object storage that fails halfway or cuts its answers short: nothing is lost, and each command can be repeated."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from needed import need_package

from refold.errors import StoreError, TraceNotFoundError
from refold.testing.store_suite import _members, _write
from refold.traces import Trace
from refold.traces.file.writer import TraceWriter
from refold.traces.stores import RunRef
from refold.traces.stores.retention import Keep, plan_removal, remove

SEGMENTS = 20


@pytest.fixture
def store() -> Any:
    need_package("obstore")
    from obstore.store import MemoryStore

    from refold.traces.stores.objects.bucket import Bucket
    from refold.traces.stores.objects.store import ObjectStore

    return ObjectStore(Bucket(MemoryStore(), "memory://faults"))


def write_many(store: Any, run_id: str = "run") -> bytes:
    """Write a run of many segments, with its end, and return its bytes."""
    with TraceWriter.create(RunRef(store, run_id)) as writer:
        writer.append("header", 0, 1.0, _members(run_id, 0))
        for number in range(SEGMENTS):
            writer.append("event", 0, 1.0, {"name": f"e{number}"})
        writer.append("end", 0, 1.0, {"status": "completed", "stop_reason": "final"})
        data: bytes = store.read(run_id)
    return data


def cut(monkeypatch: pytest.MonkeyPatch, store: Any, times: int, *, of: str = "/segments/") -> None:
    """Cut answers that are segments at the end of a line, where a shorter trace looks whole."""
    get, left = store._bucket.get, [times]

    def short(name: str) -> Any:
        found = get(name)
        if of not in name or left[0] == 0 or found is None or found.data.count(b"\n") < 2:
            return found
        left[0] -= 1
        return replace(found, data=found.data[: found.data.index(b"\n") + 1])

    monkeypatch.setattr(store._bucket, "get", short)


def test_a_segment_that_comes_cut_short_is_read_again(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = TraceWriter.create(RunRef(store, "run"))
    writer.append("header", 0, 1.0, _members("run", 0))
    data = store.read("run")
    cut(monkeypatch, store, 1)
    assert store.read("run") == data
    cut(monkeypatch, store, -1)
    with pytest.raises(StoreError, match="segments of run run are missing or cut short"):
        store.read("run")


def test_segments_that_are_read_wrongly_are_not_put_together(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The segments are removed afterwards, and what was read would be all that is left."""
    from refold.traces.stores.objects import run_writer, segments

    read = segments.read_segments

    def wrong(bucket: Any, run_id: str) -> Any:
        found = read(bucket, run_id)
        return replace(found, data=found.data[: found.data.index(b"\n") + 1])

    def put_together(*args: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(segments, "read_segments", wrong)
            segments.put_together(*args)

    monkeypatch.setattr(run_writer, "put_together", put_together)
    data = write_many(store)
    assert store.read("run") == data


def test_an_object_that_is_no_document_is_named(store: Any) -> None:
    _write(store, "run", end="completed")
    store._bucket.put("rows/run", b'{"run_id": "ru')
    with pytest.raises(StoreError, match=r"the object `rows/run` is not as refold wrote it .*; try again, or restore"):
        store.runs()
    store._bucket.put("rows/run", b'{"id": "run"}')
    with pytest.raises(StoreError, match="`rows/run` is no row of a run"):
        store.runs()


@pytest.mark.parametrize("put_together", [True, False])
def test_a_removal_that_is_cut_off_is_repeated_and_leaves_nothing(
    store: Any, monkeypatch: pytest.MonkeyPatch, put_together: bool
) -> None:
    """What it leaves until then is the whole trace, or none that could be resumed."""
    if not put_together:
        monkeypatch.setattr("refold.traces.stores.objects.run_writer.put_together", lambda *_: None)
    left = kept = 0
    while True:
        data = write_many(store)
        store.blobs("run").put(b"blob")
        with monkeypatch.context() as patch:
            patch.setattr(store._bucket, "delete", failing_after(store._bucket.delete, left))
            try:
                remove(store, plan_removal(store, [Keep(last=0)], 1e9))
            except StoreError:
                pass
            else:
                break
        left += 1
        try:
            assert store.read("run") in (data, b"")
        except (StoreError, TraceNotFoundError):
            kept += 1
        remove(store, plan_removal(store, [Keep(last=0)], 1e9))
        assert [entry.name for entry in store._bucket.entries("") if "run" in entry.name] == []
    assert left > 3
    assert kept


def failing_after(delete: Callable[[list[str]], None], count: int) -> Callable[[list[str]], None]:
    """Return a function that removes so many objects and then fails."""
    left = [count]

    def some(names: list[str]) -> None:
        for name in names:
            if left[0] == 0:
                raise StoreError("503 SlowDown")
            left[0] -= 1
            delete([name])

    return some


def test_a_run_that_is_removed_while_a_list_is_read_is_left_out(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(store, "gone")
    _write(store, "there")
    rows = list(store._rows())
    store.delete("gone")
    monkeypatch.setattr(store, "_rows", lambda: iter(rows))
    assert [row.run_id for row in store.runs().rows] == ["there"]


@pytest.mark.parametrize("work", ["create", "open", "close", "rename", "delete"])
def test_a_run_whose_lease_could_not_be_given_back_is_free_for_its_own_process(
    store: Any, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    """The lease lasts for half a minute, and nobody would write under it."""

    def do() -> None:
        if work == "create":
            TraceWriter.create(RunRef(store, "run"))
        elif work == "open":
            TraceWriter.reopen(RunRef(store, "old"))
        elif work == "rename":
            store.rename("old", "new")
        else:
            store.delete("old")

    _write(store, "old")
    real = store._bucket.get
    name = "runs/run/lease" if work == "create" else "runs/old/lease"

    def failing(asked: str) -> Any:
        if asked == name and b'"seconds":30' in (real(asked) or Nothing).data:
            raise StoreError("503 SlowDown")
        return real(asked)

    if work == "close":
        writer, _ = TraceWriter.reopen(RunRef(store, "old"))
        monkeypatch.setattr(store._bucket, "replace", fail)
        writer.close()
    elif work in ("rename", "delete"):
        monkeypatch.setattr(store._bucket, "entries", fail)
        with pytest.raises(StoreError):
            do()
    else:
        monkeypatch.setattr(store._bucket, "get", failing)
        with pytest.raises(StoreError):
            do()
    monkeypatch.undo()
    writer, _ = TraceWriter.reopen(RunRef(store, name.split("/")[1]))
    writer.close()
    assert Trace.load(RunRef(store, "old")).status == "interrupted"


class Nothing:
    data = b""


def fail(*_: Any) -> Any:
    raise StoreError("503 SlowDown")
