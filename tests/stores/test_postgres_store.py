"""The PostgreSQL database as a store."""

import os
import subprocess
import sys
import time
from typing import Any

import psycopg
import pytest

from refold.errors import StoreError, TraceTakenError, TraceWriteError
from refold.testing import StoreSuite
from refold.testing.store_suite import _members
from refold.traces import Trace
from refold.traces.file.writer import TraceWriter
from refold.traces.stores import NewTask, RunRef, TraceStore, open_store


class TestPostgresStore(StoreSuite):
    BOUNDARIES = 2

    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url

    def beside(self, url: str, number: int) -> str:
        return f"{url}_{number}"


def begun(store: TraceStore) -> TraceWriter:
    writer = TraceWriter.create(RunRef(store, "run"))
    writer.append("header", 0, 1.0, _members("run", 0))
    return writer


def kinds(store: TraceStore) -> list[str]:
    trace = Trace.load(RunRef(store, "run"))
    trace._lines.check_chain()
    return [record.kind for record in trace.records]


def test_tables_of_a_newer_refold_are_refused_also_by_who_has_them_open(postgres_url: str) -> None:
    store = open_store(postgres_url)
    writer = begun(store)
    with psycopg.connect(store._database._dsn, autocommit=True) as connection:  # type: ignore[attr-defined]
        connection.execute(f"COMMENT ON TABLE {store._database._schema}.heads IS 'refold store, version 2'")  # type: ignore[attr-defined]
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises((StoreError, TraceWriteError), match="newer refold: its tables have version 2"):
        writer.append("event", 0, 2.0, {"name": "e"})
    with pytest.raises(StoreError, match="newer refold: its tables have version 2, this refold's have 1"):
        open_store(postgres_url, "read")


COMMIT: dict[str, Any] = {"patch": [], "observation": None}


def test_a_commit_that_nobody_has_waited_for_is_refused_with_the_append_after_it(postgres_url: str) -> None:
    """A step's commit starts nothing, so its writer need not know at once that it has lost the run."""
    store = open_store(postgres_url)
    table = store.tasks("set")
    table.add([NewTask("task")])
    [lease] = table.claim("a", 1, seconds=0.0)
    writer = begun(store.under(lease))
    writer.append("commit", 0, 2.0, COMMIT)
    assert kinds(store) == ["header", "commit"]
    assert table.claim("b", 1, seconds=60.0)
    writer.append("commit", 1, 3.0, COMMIT)
    with pytest.raises(TraceTakenError, match="b"):
        writer.append("event", 2, 4.0, {"name": "zombie"})
    writer.close()
    assert kinds(store) == ["header", "commit"]
    store.close()


def test_a_commit_that_a_lost_connection_took_along_is_sent_again(postgres_url: str) -> None:
    store, other = open_store(postgres_url), open_store(postgres_url)
    writer = begun(store)
    for step in range(20):
        if step % 3 == 0:
            other._database.rows(  # type: ignore[attr-defined]
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            )
        writer.append("commit", step, 2.0, COMMIT)
        if step % 2:
            writer.append("event", step, 2.0, {"name": "e"})
    writer.append("end", 20, 3.0, {"status": "completed", "stop_reason": "final"})
    writer.close()
    found = kinds(other)
    assert (found.count("commit"), found.count("event"), len(found)) == (20, 10, 32)
    store.close()
    other.close()


_DIES = """
import os, sys
from refold.testing.store_suite import _members
from refold.traces.file.writer import TraceWriter
from refold.traces.stores import RunRef, open_store
writer = TraceWriter.create(RunRef(open_store(sys.argv[1]), "run"))
writer.append("header", 0, 1.0, _members("run", 0))
writer.append("commit", 0, 2.0, {"patch": [], "observation": None})
os._exit(0)
"""


def test_a_commit_outlives_the_process_that_has_sent_it(postgres_url: str) -> None:
    subprocess.run([sys.executable, "-c", _DIES, postgres_url], check=True, env=os.environ)
    store = open_store(postgres_url)
    while kinds(store) != ["header", "commit"]:
        time.sleep(0.01)
    store.close()


def test_many_lines_in_one_append_come_back_as_they_were_written(postgres_url: str) -> None:
    """More lines than have a statement of their own are sent as arrays."""
    store = open_store(postgres_url)
    source = open_store(postgres_url.replace("schema=", "schema=of_"))
    for each in (source, store):
        writer = begun(each)
        if each is source:
            for number in range(30):
                text = ("\\", '"', "{", "NULL", "é\n")[number % 5] * number
                writer.append("event", 0, 2.0, {"name": "e", "data": {"text": text}})
        writer.close()
    lines = source.read("run", len(store.read("run")))
    held = store.open("run")
    held.write(lines)
    held.close()
    assert store.read("run") == source.read("run")
    store.close()
    source.close()


def test_a_server_that_became_read_only_says_what_to_do(postgres_url: str) -> None:
    """As an old primary is after a failover; what is written before and after is complete."""
    store = open_store(postgres_url)
    database = store._database  # type: ignore[attr-defined]
    writer = TraceWriter.create(RunRef(store, "run"))
    writer.append("header", 0, 1.0, _members("run", 0))
    database._connection.execute("SET default_transaction_read_only = on")
    with pytest.raises(TraceWriteError, match=r"takes no writes now .*; its records are complete: resume the run"):
        writer.append("end", 0, 2.0, {"status": "completed", "stop_reason": "final"})
    writer.close()
    with pytest.raises(StoreError, match="name the server that does, or wait until this one does"):
        store.tasks("set").add([NewTask("one")])
    database._connection.execute("SET default_transaction_read_only = off")
    with TraceWriter.reopen(RunRef(store, "run"))[0] as again:
        again.append("end", 0, 2.0, {"status": "completed", "stop_reason": "final"})
    assert [record.kind for record in Trace.load(RunRef(store, "run")).records] == ["header", "end"]
    store.close()
