"""A trace as objects: segments, each written once under the next number.

The number is the compare-and-swap: of two writers that append after the same segment, one finds the number taken. A
process that takes over a run writes an empty segment first, so that the previous writer finds its next number taken,
too. The first line of a segment names its writer. Many small segments are merged into one object with a new name, which
says up to which segment it reaches. Empty segments are kept: a writer that was stopped for long may yet resume, and
must find its next number taken.
"""

from dataclasses import dataclass

import orjson

from ....errors import StoreError
from .bucket import Bucket

_RETRIES = 10
_DIGITS = 12
MANY = 16
"""From how many segments on a closing writer merges them."""


@dataclass(frozen=True, slots=True)
class Segments:
    """The segments of a run: bytes, last number, count, and `full`.

    `full` has the names of those that are not empty.
    """

    data: bytes
    last: int
    count: int
    full: tuple[str, ...]


def folder_of(run_id: str) -> str:
    """Return the prefix of a run's objects."""
    return f"runs/{run_id}/"


def segment_name(run_id: str, number: int) -> str:
    """Return the name of a segment."""
    return f"{folder_of(run_id)}segments/{number:0{_DIGITS}}"


def segment(epoch: int, owner: str, data: bytes) -> bytes:
    """Return the content of a segment."""
    return orjson.dumps({"epoch": epoch, "owner": owner}) + b"\n" + data


def owner_of(content: bytes) -> tuple[int, str]:
    """Return epoch and owner of a segment."""
    doc = orjson.loads(content.partition(b"\n")[0])
    return int(doc["epoch"]), str(doc["owner"])


def read_segments(bucket: Bucket, run_id: str) -> Segments:
    """Return a run's segments.

    Reads again if a writer was merging segments meanwhile. Raises `StoreError` if segments are missing, or if an object
    does not have the size that the list says: a trace that is cut at the end of a line looks whole.
    """
    for _ in range(_RETRIES):
        whole_prefix, prefix = f"{folder_of(run_id)}whole/", f"{folder_of(run_id)}segments/"
        entries = bucket.entries(folder_of(run_id))
        wholes = [entry.name for entry in entries if entry.name.startswith(whole_prefix)]
        upto = int(wholes[-1].rpartition("/")[2]) if wholes else -1
        names = [entry.name for entry in entries if entry.name.startswith(prefix)]
        names = [name for name in names if int(name.rpartition("/")[2]) > upto]
        numbers = [int(name.rpartition("/")[2]) for name in names]
        found = bucket.get_all([*wholes[-1:], *names])
        contents = [each.data for each in found if each is not None]
        sizes = {entry.name: entry.size for entry in entries}
        is_whole = list(map(len, contents)) == [sizes[name] for name in (*wholes[-1:], *names)]
        if is_whole and numbers == list(range(upto + 1, upto + 1 + len(numbers))):
            parts = [content.partition(b"\n")[2] for content in contents]
            full = tuple(name for name, part in zip(names, parts[len(wholes[-1:]) :], strict=True) if part)
            return Segments(b"".join(parts), upto + len(numbers), len(numbers), full)
    raise StoreError(
        f"{bucket.url}: segments of run {run_id} are missing or cut short; another program may have removed objects"
    )


def put_together(bucket: Bucket, run_id: str, epoch: int, owner: str, data: bytes) -> None:
    """Replace the segments of a run by one object.

    If they do not hold `data`, which their writer has written, they are left as they are.
    """
    found = read_segments(bucket, run_id)
    if found.count < MANY or found.data != data:
        return
    name = f"{folder_of(run_id)}whole/{found.last:0{_DIGITS}}"
    if bucket.create(name, segment(epoch, owner, found.data)):
        before = [entry.name for entry in bucket.entries(f"{folder_of(run_id)}whole/") if entry.name < name]
        bucket.delete([*found.full, *before])
