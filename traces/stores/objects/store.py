"""The store in object storage."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import obstore
import orjson
from obstore.store import S3Store

from ....errors import StoreError, TraceCorruptError, TraceExistsError, TraceLockedError, TraceNotFoundError, UsageError
from ....secret_table import without_password
from ...file.append_only import Store
from ...file.blob import blob_reference
from ...file.schema import is_run_id
from ..access import Access
from ..beats import Beats
from ..owner import SECONDS, end_owner, has_died, new_owner, person_text
from ..protocol import Durability, Grouping
from ..run_row import RunFilter, RunPage, RunRow, Total
from ..summaries import add_up, page_of
from ..task_table import Lease
from .bucket import Bucket, Found
from .run_writer import ObjectRun, lease_content
from .segments import folder_of, read_segments, segment, segment_name
from .tasks import ObjectTasks, check_lease, set_ids

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

_TIMEOUT = "10s"
_RETRY: "RetryConfig" = {"max_retries": 4, "retry_timeout": timedelta(seconds=15)}
"""Well below the length of a lease: obstore's default is to retry for three minutes."""


class ObjectStore:
    """Traces, runs and sets as objects below a prefix.

    Lists and totals read an object for each run: this store is meant for archives, and for sets of some thousand tasks.
    """

    def __init__(self, bucket: Bucket, lease: Lease | None = None, beats: "Beats[ObjectRun] | None" = None) -> None:
        self._bucket = bucket
        self._lease = lease
        self._beats = beats or Beats(_beat)

    @classmethod
    def at(cls, url: str, access: Access = "create") -> "ObjectStore":
        """Open `s3://[KEY:SECRET@]bucket/prefix?endpoint=URL&region=NAME`; credentials default to AWS's variables."""
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        if unknown := options.keys() - {"endpoint", "region"}:
            raise UsageError(f"{without_password(url)}: an s3 URL takes endpoint and region, not {', '.join(unknown)}")
        if not parts.hostname:
            raise UsageError(f"{without_password(url)} names no bucket: write s3://bucket/prefix")
        given: dict[str, Any] = {"prefix": parts.path.strip("/") or None}
        if parts.username:
            given |= {"access_key_id": unquote(parts.username), "secret_access_key": unquote(parts.password or "")}
        if "region" in options:
            given["region"] = options["region"]
        client: ClientConfig = {"timeout": _TIMEOUT}
        if endpoint := options.get("endpoint"):
            given |= {"endpoint": endpoint, "virtual_hosted_style_request": False}
            client["allow_http"] = endpoint.startswith("http://")
        try:
            objects = S3Store(parts.netloc.rpartition("@")[2], client_options=client, retry_config=_RETRY, **given)
        except obstore.exceptions.BaseError as error:
            raise StoreError(f"{without_password(url)} cannot be opened: {error}") from error
        return cls(Bucket(objects, url, probe=access != "read"))

    @property
    def url(self) -> str:
        """The address of the store, without a password."""
        return self._bucket.url

    def create(self, run_id: str, *, above: str | None = None, durability: Durability = "process") -> Store:
        """Start a trace; see `TraceStore`."""
        if not is_run_id(run_id):
            raise TraceNotFoundError(f"{run_id!r} is not the id of a run")
        self._check()
        if self._lease is not None and above is None:
            ObjectTasks(self._bucket, self._lease.set_id).note_run(self._lease, run_id)
        name = f"{folder_of(run_id)}lease"
        with _owner() as owner:
            if not self._bucket.create(name, lease_content(1, owner, SECONDS)):
                raise TraceExistsError(f"{self.url}#{run_id}")
            return self._run(run_id, 1, owner, b"", -1, durability)

    def open(self, run_id: str, *, durability: Durability = "process") -> Store:
        """Hold a trace for writing; see `TraceStore`."""
        self._check()
        with _owner() as owner:
            epoch = self._take(run_id, owner, SECONDS)
            while True:
                found = read_segments(self._bucket, run_id)
                if self._bucket.create(segment_name(run_id, found.last + 1), segment(epoch, owner, b"")):
                    return self._run(run_id, epoch, owner, found.data, found.last + 1, durability)

    def _take(self, run_id: str, owner: str, seconds: float) -> int:
        """Take the lease of a run, and return its new epoch.

        Raises `TraceLockedError` if a living writer's lease has not run out.
        """
        name = f"{folder_of(run_id)}lease"
        while True:
            found = self._bucket.get(name)
            if found is None:
                raise self._missing(run_id)
            doc = found.doc()
            if self._lease is None and self._is_held(found.at, doc):
                raise TraceLockedError(f"{self.url}#{run_id}", holder=person_text(doc["owner"]))
            if self._bucket.replace(name, lease_content(doc["epoch"] + 1, owner, seconds), found.tag):
                return int(doc["epoch"]) + 1

    def _is_held(self, at: float, doc: dict[str, Any]) -> bool:
        """Return whether the writer of a lease still lives.

        The lease was written at the time `at` of the store's clock.
        """
        return doc["seconds"] > 0 and not has_died(doc["owner"]) and at + doc["seconds"] >= self._bucket.now()

    def _run(self, run_id: str, epoch: int, owner: str, data: bytes, last: int, durability: Durability) -> ObjectRun:
        found = self._bucket.get(f"{folder_of(run_id)}lease")
        run = ObjectRun(
            self._bucket,
            run_id,
            epoch,
            owner,
            found.tag if found is not None else "",
            data,
            last,
            buffered=durability == "none",
            check=self._check,
            put_row=self._put_row,
        )
        self._beats.add(run)
        return run

    def _check(self) -> None:
        if self._lease is not None:
            check_lease(self._bucket, self._lease)

    def _put_row(self, row: RunRow) -> None:
        if self._lease is not None:
            row = replace(row, set_id=self._lease.set_id, model=row.model or self._lease.model)
        else:
            there = self._bucket.get(f"rows/{row.run_id}")
            known = there.doc() if there is not None else {}
            row = replace(row, set_id=known.get("set_id", ""), model=row.model or known.get("model", ""))
        self._bucket.put(f"rows/{row.run_id}", orjson.dumps(asdict(row)))

    def _missing(self, run_id: str) -> TraceNotFoundError:
        return TraceNotFoundError(f"there is no run {run_id} in {self.url}")

    def read(self, run_id: str, start: int = 0) -> bytes:
        """Return the bytes of a trace; see `TraceStore`."""
        found = read_segments(self._bucket, run_id)
        if found.last < 0 and not self.has(run_id):
            raise self._missing(run_id)
        return found.data[start:]

    def blobs(self, run_id: str) -> "ObjectBlobs":
        """Return the blobs of a run."""
        return ObjectBlobs(self._bucket, run_id)

    def blob_names(self, run_id: str) -> list[str]:
        """Return the hashes of a run's blobs."""
        return [entry.name.rpartition("/")[2] for entry in self._bucket.entries(f"{folder_of(run_id)}blobs/")]

    def has(self, run_id: str) -> bool:
        """Return whether there is a trace of this run."""
        return is_run_id(run_id) and self._bucket.get(f"{folder_of(run_id)}lease") is not None

    def run(self, run_id: str) -> RunRow:
        """Return the row of one run; see `TraceStore`."""
        lease = self._bucket.get(f"{folder_of(run_id)}lease")
        if lease is None:
            raise self._missing(run_id)
        found = self._bucket.get(f"rows/{run_id}")
        row = _row(found) if found is not None else RunRow(run_id)
        doc = lease.doc()
        held = self._is_held(lease.at, doc)
        return replace(row, held=held, holder=person_text(doc["owner"]) if held else None)

    def _rows(self) -> Iterator[RunRow]:
        names = [entry.name for entry in self._bucket.entries("rows/")]
        for found in self._bucket.get_all(names):
            if found is not None:
                yield _row(found)

    def runs(self, where: RunFilter | None = None, *, after: str | None = None, limit: int = 100) -> RunPage:
        """Return a page of the runs.

        A page reads an object for each run, and the leases of the runs on the page.
        """
        page = page_of(self._rows(), where or RunFilter(), after, limit)
        rows = list[RunRow]()
        for row in page.rows:
            with contextlib.suppress(TraceNotFoundError):  # removed meanwhile
                rows.append(self.run(row.run_id) if row.status in ("interrupted", "waiting") else row)
        return RunPage(tuple(rows), page.next)

    def totals(self, by: Sequence[Grouping] = ("status",), where: RunFilter | None = None) -> list[Total]:
        """Return totals, computed from the rows."""
        return add_up(self._rows(), by, where or RunFilter())

    def path_of(self, run_id: str) -> Path | None:
        """Return None: a run is several objects."""
        return None

    def rename(self, run_id: str, to: str) -> None:
        """Set a run aside; see `TraceStore`. Its objects are copied, then removed."""
        if self.has(to):
            raise TraceExistsError(f"{self.url}#{to}")
        with _owner() as owner:
            self._rename(run_id, to, owner)

    def _rename(self, run_id: str, to: str, owner: str) -> None:
        self._take(run_id, owner, SECONDS)
        for entry in self._bucket.entries(folder_of(run_id)):
            if (found := self._bucket.get(entry.name)) is not None:
                self._bucket.put(f"{folder_of(to)}{entry.name.removeprefix(folder_of(run_id))}", found.data)
        self._bucket.put(f"{folder_of(to)}lease", lease_content(1, owner, 0.0))
        if (row := self._bucket.get(f"rows/{run_id}")) is not None:
            self._bucket.put(f"rows/{to}", orjson.dumps({**row.doc(), "run_id": to}))
        self._remove(run_id)

    def delete(self, run_id: str) -> None:
        """Remove a run; see `TraceStore`."""
        with _owner() as owner:
            try:
                self._take(run_id, owner, SECONDS)
            except TraceNotFoundError:
                self._bucket.delete([f"rows/{run_id}"])
                return
            self._remove(run_id)

    def _remove(self, run_id: str) -> None:
        """Remove a run's objects; an interrupted removal can be repeated.

        The merged segments are removed first: what is left without them cannot be read as a shorter trace, and resumed.
        The row is removed last: without it, nobody would find what is left.
        """
        prefix = folder_of(run_id)
        lease, whole = f"{prefix}lease", f"{prefix}whole/"
        names = [entry.name for entry in self._bucket.entries(prefix) if entry.name != lease]
        names.sort(key=lambda name: not name.startswith(whole))
        self._bucket.delete([*names, lease, f"rows/{run_id}"])

    def sets(self) -> list[str]:
        """Return the ids of the sets."""
        return set_ids(self._bucket)

    def tasks(self, set_id: str) -> ObjectTasks:
        """Return the tasks of a set."""
        return ObjectTasks(self._bucket, set_id)

    def under(self, lease: Lease) -> "ObjectStore":
        """Return this store for the work of one lease."""
        return ObjectStore(self._bucket, lease, self._beats)

    def close(self) -> None:
        """Do nothing: the client closes idle connections by itself."""


class ObjectBlobs:
    """The blobs of one run in object storage."""

    def __init__(self, bucket: Bucket, run_id: str) -> None:
        self._bucket = bucket
        self._run_id = run_id

    def put(self, data: bytes) -> dict[str, Any]:
        """Keep `data` and return its reference."""
        reference = blob_reference(data)
        self._bucket.create(f"{folder_of(self._run_id)}blobs/{reference['$blob']}", data)
        return reference

    def get(self, digest: str, size: int | None = None) -> bytes:
        """Return a blob; see `Blobs`."""
        found = self._bucket.get(f"{folder_of(self._run_id)}blobs/{digest}") if digest.isalnum() else None
        if found is None:
            raise TraceNotFoundError(f"blob {digest} of run {self._run_id} is missing in {self._bucket.url}")
        if (size is not None and len(found.data) != size) or blob_reference(found.data)["$blob"] != digest:
            raise TraceCorruptError(
                f"blob {digest} of run {self._run_id} in {self._bucket.url} does not fit the hash in its name", 0
            )
        return found.data


@contextlib.contextmanager
def _owner() -> Iterator[str]:
    """Yield a new owner, and end the owner after an error.

    A lease that it has taken then keeps nobody of this process waiting.
    """
    owner = new_owner()
    try:
        yield owner
    except BaseException:
        end_owner(owner)
        raise


def _row(found: Found) -> RunRow:
    """Return the row in an object, or raise `StoreError`."""
    try:
        return RunRow(**found.doc())
    except TypeError as error:
        raise StoreError(f"{found.name} is no row of a run: another program wrote it; remove it ({error})") from error


def _beat(runs: "list[ObjectRun]") -> None:
    for run in runs:
        with contextlib.suppress(StoreError):
            run.beat()
