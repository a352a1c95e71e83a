"""Object storage as a store: obstore's own in memory, and an S3-compatible server on loopback."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from needed import need_package
from object_server import object_server

from refold.errors import StoreError
from refold.testing import StoreSuite
from refold.testing.store_suite import _members
from refold.traces.stores import TraceStore, open_store

_prefixes = count()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    with object_server() as pattern:
        yield pattern


class TestObjectsInMemory(StoreSuite):
    @pytest.fixture
    def url(self) -> str:
        need_package("obstore")
        self.kept: dict[str, Any] = {}
        return f"memory://{next(_prefixes)}"

    def open(self, url: str) -> TraceStore:
        from obstore.store import MemoryStore

        from refold.traces.stores.objects.bucket import Bucket
        from refold.traces.stores.objects.store import ObjectStore

        return ObjectStore(Bucket(self.kept.setdefault(url, MemoryStore()), url))


@pytest.mark.slow
class TestS3Store(StoreSuite):
    BOUNDARIES = 1
    TASKS = 10

    @pytest.fixture
    def url(self, s3_server: str) -> str:
        return s3_server.format(f"p{next(_prefixes)}")

    def beside(self, url: str, number: int) -> str:
        return url.replace("?", f"-{number}?")

    def open(self, url: str) -> TraceStore:
        store = open_store(url)
        assert "hidden-word" not in store.url
        return store


def test_a_server_that_ignores_conditions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    need_package("obstore")
    import obstore
    from obstore.store import MemoryStore

    from refold.traces.stores.objects.bucket import Bucket

    real = obstore.put
    monkeypatch.setattr(obstore, "put", lambda objects, name, data, **ignored: real(objects, name, data))
    with pytest.raises(StoreError, match="conditional writes"):
        Bucket(MemoryStore(), "s3://key:hidden-word@bucket/x")


def test_segments_are_put_together_when_a_run_is_closed(s3_server: str) -> None:
    from refold.traces.file.writer import TraceWriter
    from refold.traces.stores import RunRef
    from refold.traces.stores.objects.segments import read_segments
    from refold.traces.stores.objects.store import ObjectStore

    store = open_store(s3_server.format(f"p{next(_prefixes)}"))
    assert isinstance(store, ObjectStore)
    with TraceWriter.create(RunRef(store, "one")) as writer:
        writer.append("header", 0, 1.0, _members("one", 0))
        for number in range(1, 20):
            writer.append("event", 0, 1.0, {"name": f"e{number}"})
        data = store.read("one")
        assert read_segments(store._bucket, "one").count == 20
    assert read_segments(store._bucket, "one").count == 0
    assert store._bucket.entries("runs/one/segments/") == []
    assert store.read("one") == data
    writer, _ = TraceWriter.reopen(RunRef(store, "one"))
    with writer:
        writer.append("event", 0, 1.0, {"name": "more"})
    assert store.read("one").startswith(data)
    assert store.read("one").count(b"\n") == 21
