"""Bytes: the size of a trace over that of its changes."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from ..figure import Figure, Sizes, trace_file
from ..workloads.limit import records
from ..workloads.workload import AsyncModule, ModelModule, run


def trace_bytes(sizes: Sizes) -> Iterator[Figure]:
    """Yield the bytes of a trace and its blobs, over the patches'."""
    for key, title, module, goal in (
        ("bytes.tool", "bytes of the trace over the deltas'", AsyncModule(), 4.0),
        ("bytes.model", "the same, with a model call over all messages in each step", ModelModule(), 5.0),
    ):
        with TemporaryDirectory(prefix="refold-bench-") as name:
            folder = Path(name)
            run(module, sizes.steps, folder)
            whole = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            written = records(trace_file(folder))
        deltas = sum(len(orjson.dumps(record["patch"])) for record in written if record["kind"] == "commit")
        by_kind: dict[str, int] = {}
        for record in written:
            by_kind[record["kind"]] = by_kind.get(record["kind"], 0) + len(orjson.dumps(record)) + 43
        details = {"steps": sizes.steps, "trace": whole, "deltas": deltas, "by_kind": by_kind}
        yield Figure(key, f"{title}, N = {sizes.steps:,}", whole / deltas, goal, details=details)
