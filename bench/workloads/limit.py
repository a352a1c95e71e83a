"""The lower bound: the same records dumped, hashed in a chain, written."""

import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

STEP_KINDS = frozenset(("decide", "intent", "outcome", "commit"))
"""The four records of a step."""


def step_records(trace: Path) -> list[dict[str, Any]]:
    """Return the records of steps, parsed, without their hash."""
    return [record for record in records(trace) if record["kind"] in STEP_KINDS]


def records(trace: Path) -> list[dict[str, Any]]:
    """Return all records of a trace, parsed, without their hash."""
    parsed = [orjson.loads(line) for line in trace.read_bytes().splitlines()]
    for record in parsed:
        del record["hash"]
    return parsed


def write_records(docs: Iterable[dict[str, Any]], path: Path) -> None:
    """Write the records like a trace: one `os.write` each."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    previous = b""
    for doc in docs:
        line, previous = chained(doc, previous)
        os.write(fd, line)
    os.close(fd)


def chained(doc: dict[str, Any], previous: bytes) -> tuple[bytes, bytes]:
    """Return one line with its hash, and the hash."""
    body = orjson.dumps(doc)[:-1]
    digest = blake2b(previous + body, digest_size=16).hexdigest().encode()
    return b'%b,"hash":"%b"}\n' % (body, digest), digest
