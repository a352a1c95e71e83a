"""The bytes of a trace as numbered lines: the framing, the hash chain, and the way from a line to its record."""

import json
from array import array
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from ..errors import NotATraceError, RecordError, TraceCorruptError
from .record import HASH_LENGTH, TAIL_LENGTH, Record, line_hash

START = b'{"kind":"'
HEADER = b'{"kind":"header"'


class Lines:
    """All whole records of one trace; `torn` is what stands behind the last newline.

    Only b"\\n" ends a line: U+2028, U+2029 and U+0085 are text like any other. JSON escapes newlines and NULs in
    text, so a raw one is never part of a record.
    """

    def __init__(self, data: bytes, path: Path | None = None) -> None:
        self.data = data
        self.path = path
        self.end = data.rfind(b"\n") + 1

    @property
    def torn(self) -> bytes:
        """The bytes behind the last newline: a record that was never finished, or NULs that a crash left."""
        return self.data[self.end :]

    @cached_property
    def offsets(self) -> "array[int]":
        """Where each line begins, and at last where all end."""
        offsets, find = array("Q", [0]), self.data.find
        at = find(b"\n") + 1
        while at:
            offsets.append(at)
            at = find(b"\n", at) + 1
        return offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def raw(self, index: int) -> bytes:
        """Give a line without its newline; `index` counts from 0."""
        return self.data[self.offsets[index] : self.offsets[index + 1] - 1]

    def record(self, index: int) -> Record:
        """Give a line as a record; raises `TraceCorruptError` where it has not the form of one."""
        try:
            return Record.parse(self.raw(index), self.path)
        except RecordError as error:
            raise TraceCorruptError(str(error), index + 1, path=self.path) from None

    def record_at(self, offset: int) -> Record:
        """Give the record of the line that begins at this byte."""
        try:
            return Record.parse(self.data[offset : self.data.find(b"\n", offset)], self.path)
        except RecordError as error:
            raise TraceCorruptError(str(error), self.number(offset), path=self.path) from None

    def number(self, offset: int) -> int:
        """Give the number, from 1, of the line that holds this byte."""
        return self.data.count(b"\n", 0, offset) + 1

    def check_kind(self) -> None:
        """Check that these can be the bytes of a trace, whole, cut off or damaged; raises `NotATraceError`."""
        head = self.data[: len(HEADER)]
        if HEADER.startswith(head) or head.startswith(START) or b"\n" + START in self.data:
            return
        if self.data.strip(b"\0"):
            raise NotATraceError(self.path)

    def check_tail(self) -> None:
        """Check, fast, that the first line begins a record, the last is a whole one, and no NULs stand between them.

        Raises `TraceCorruptError` with the first bad line. The lines between are checked when they are read.
        """
        data, end = self.data, self.end
        if end and not (data.startswith(START) and data.find(b"\0", 0, end) < 0 and self.last_fits()):
            self.check_chain()
            raise TraceCorruptError("the line has not the form of a record", len(self), path=self.path)

    def check_chain(self) -> None:
        """Check each line's form, number and hash; raises `TraceCorruptError` with the first bad line."""
        previous = b""
        for index in range(len(self)):
            record = self.record(index)
            expected = line_hash(previous, record.raw)
            if record.hash != expected:
                raise TraceCorruptError(
                    "the hash does not fit the line", index + 1, path=self.path, expected=expected, actual=record.hash
                )
            if record.seq != index:
                raise TraceCorruptError(
                    "the records are not numbered in order",
                    index + 1,
                    path=self.path,
                    expected=index,
                    actual=record.seq,
                )
            try:
                doc = orjson.loads(record.raw)
            except orjson.JSONDecodeError as error:
                raise TraceCorruptError(f"the line is not JSON: {error}", index + 1, path=self.path) from None
            twice = _named_twice(record.raw, doc)
            if twice is not None:
                reason = "an object has two members of one name, and readers differ in which they take"
                raise TraceCorruptError(reason, index + 1, path=self.path, actual=twice)
            del doc  # the next one is made beside none
            previous = record.hash.encode()

    def last_fits(self) -> bool:
        """Tell whether the hash of the last whole line fits it and the line before."""
        start = self.data.rfind(b"\n", 0, self.end - 1) + 1
        raw = self.data[start : self.end - 1]
        previous = self.data[start - HASH_LENGTH - 3 : start - 3] if start else b""
        return len(raw) > TAIL_LENGTH and raw[-HASH_LENGTH - 2 : -2] == line_hash(previous, raw).encode()


def _named_twice(raw: bytes, doc: Any) -> str | None:
    """Give a name that two members of one object have; None in a line that is written as orjson writes what it says."""
    try:
        if orjson.dumps(doc) == raw:
            return None
    except TypeError:  # deeper than orjson writes: the record's members say so
        return None
    found: list[str] = []

    def see(pairs: list[tuple[str, Any]]) -> None:
        names = set[str]()
        for name, _ in pairs:
            if name in names:
                found.append(name)
            names.add(name)

    json.loads(raw, object_pairs_hook=see, parse_int=float)
    return found[0] if found else None
