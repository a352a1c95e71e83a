"""A result as a log of Inspect."""

import io
import json
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from ....errors import TraceError
from ....traces import Trace
from ..comparison import trace_of
from ..folder import ABOUT, open_runs, read_rows
from ..result import EvalResult
from ..sample import Sample

_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time of a zip entry, so that a log depends only on its runs."""
_UNSAFE = re.compile(r"[/\\:\x00-\x1f]")


def inspect_log(result: EvalResult) -> bytes:
    """Return the `.eval` log of a result, as bytes.

    It has the samples with their scores, messages or steps, and the figures. Events that Inspect does not have become
    InfoEvents with the source "refold". A run that was not scored has an error.
    """
    rows = {}
    if result.folder is not None and (result.folder / ABOUT).is_file():
        rows = {row.id: row for row in read_rows(result.folder)}
    documents, started = [], 0.0
    store = open_runs(result.folder, result.traces)
    for sample in result.samples:
        trace = trace_of(store, sample.run_id)
        began = _began(trace)
        started = min(filter(None, (started, began)), default=0.0)
        row = rows.get(sample.id)
        objective = row.task.objective if row is not None else _objective(trace) or sample.id
        documents.append(_sample(sample, trace, began, objective, row.target if row is not None else None))
    if store is not None:
        store.close()
    header = _header(result, started, rows)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as log:
        for sample, document in zip(result.samples, documents, strict=True):
            name = f"samples/{_UNSAFE.sub('_', sample.key)}_epoch_{sample.repeat}.json"
            _add(log, name, document)
        _add(log, "summaries.json", [_summary(document) for document in documents])
        _add(log, "header.json", header)
    return out.getvalue()


def _header(result: EvalResult, started: float, rows: Mapping[str, Any]) -> dict[str, Any]:
    identity = _identity(result.name, result.digest, *(str(each.run_id) for each in result.samples))
    errors = sum(not each.is_scored for each in result.samples)
    scores = [
        {
            "name": name,
            "scorer": name,
            "params": {},
            "metrics": {
                "mean": {"name": "mean", "value": found.mean, "params": {}},
                **({} if found.interval is None else _ends(found.interval)),
            },
        }
        for name, found in result.metrics_summary.items()
    ]
    return {
        "version": 2,
        "status": "success" if not errors else "error",
        "eval": {
            "eval_id": identity,
            "run_id": identity,
            "task_id": _identity(result.name),
            "created": _time(started),
            "task": result.name,
            "dataset": {
                "name": result.name,
                "samples": len({each.id for each in result.samples}),
                "sample_ids": list(dict.fromkeys(each.id for each in result.samples)),
            },
            "model": "refold/recorded",
            "config": {"epochs": result.repeats},
            "metadata": {"refold_dataset_digest": result.digest},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": len(result.samples),
            "completed_samples": len(result.samples) - errors,
            "scores": scores,
        },
        "stats": {"started_at": _time(started), "completed_at": _time(started), "model_usage": {}},
        **(
            {"error": {"message": f"{errors} runs have no verdict", "traceback": "", "traceback_ansi": ""}}
            if errors
            else {}
        ),
    }


def _ends(interval: tuple[float, float]) -> dict[str, Any]:
    return {
        "low": {"name": "low", "value": interval[0], "params": {}},
        "high": {"name": "high", "value": interval[1], "params": {}},
    }


def _sample(sample: Sample, trace: Trace | None, began: float, objective: str, target: Any) -> dict[str, Any]:
    uuid = _identity("sample", sample.key, str(sample.repeat), str(sample.run_id))
    answer = sample.output or ""
    document: dict[str, Any] = {
        "id": sample.id,
        "epoch": sample.repeat,
        "input": objective,
        "target": _target(target),
        "messages": _messages(trace, objective, answer, uuid),
        "output": {
            "model": "refold/recorded",
            "choices": [
                {
                    "message": {"id": f"{uuid}-answer", "role": "assistant", "content": answer},
                    "stop_reason": "stop",
                }
            ],
            "completion": answer,
        },
        "scores": {
            name: {"value": score.value, "answer": sample.output, "explanation": score.reason or None}
            for name, score in sample.scores.items()
        },
        "metadata": {**sample.columns, "refold_run": sample.run_id, "refold_status": sample.status},
        "store": {},
        "events": _events(sample, trace, began, uuid),
        "model_usage": {},
        "total_time": sample.seconds,
        "working_time": sample.seconds,
        "uuid": uuid,
    }
    if not sample.is_scored:
        message = sample.error or f"the run is {sample.status}"
        document["error"] = _error(message)
    return document


def _error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _messages(trace: Trace | None, objective: str, answer: str, uuid: str) -> list[dict[str, Any]]:
    """Return an Agent's messages; for another module, the objective and the answer."""
    found: list[dict[str, Any]] = []
    if trace is not None:
        from ...agent import Trajectory

        with suppress(TraceError, ValueError, KeyError, AttributeError, TypeError):  # not an Agent's trace
            for message in Trajectory.of(trace).messages:
                found.append(_message(message, f"{uuid}-{len(found)}"))
    if found:
        return found
    return [
        {"id": f"{uuid}-0", "role": "user", "content": objective},
        {"id": f"{uuid}-1", "role": "assistant", "content": answer},
    ]


def _message(message: Any, identity: str) -> dict[str, Any]:
    document: dict[str, Any] = {"id": identity, "role": str(message.role), "content": message.content or ""}
    if message.role == "assistant" and message.tool_calls:
        document["tool_calls"] = [
            {"id": call.id, "function": call.name, "arguments": _arguments(call.arguments)}
            for call in message.tool_calls
        ]
    if message.role == "tool" and message.tool_call_id:
        document["tool_call_id"] = message.tool_call_id
    return document


def _events(sample: Sample, trace: Trace | None, began: float, uuid: str) -> list[dict[str, Any]]:
    """Return an event for each decision, tool call and score.

    Their times and ids come from the run.
    """
    events: list[dict[str, Any]] = []

    def add(kind: str, at: float, **data: Any) -> None:
        number = len(events)
        events.append(
            {
                "event": kind,
                "uuid": f"{uuid}-event-{number}",
                "timestamp": _time(at),
                "working_start": max(0.0, round(at - began, 6)),
                "pending": False,
                **data,
            }
        )

    last = began
    for step in trace.steps if trace is not None else ():
        last = _at(step.records[0]) if step.records else last
        add("info", last, source="refold", data={"step": step.index, "decision": step.decision})
        actions = {each.get("id"): each for each in (step.decision or {}).get("actions") or ()}
        for result in (step.observation or {}).get("results") or ():
            action = actions.get(result.get("id"), {})
            error = result.get("error")
            add(
                "tool",
                last,
                id=str(result.get("id")),
                function=str(result.get("name")),
                arguments=_arguments(action.get("args")),
                result=_text(result.get("output")),
                **({} if error is None else {"error": {"type": "unknown", "message": str(error)}}),
            )
    for name, score in sample.scores.items():
        value = {"value": score.value, "answer": sample.output, "explanation": score.reason or None}
        add("score", last, score=value, scorer=name)
    for name, text in sample.score_errors.items():
        add("info", last, source="refold", data={"scorer": name, "error": text})
    return events


def _summary(document: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("id", "epoch", "input", "target", "metadata", "scores", "model_usage", "total_time", "working_time", "uuid")
    error = document.get("error")
    summary = {name: document[name] for name in kept} | {"completed": error is None}
    return summary | ({} if error is None else {"error": error["message"]})


def _began(trace: Trace | None) -> float:
    return 0.0 if trace is None else _at(trace.header)


def _at(record: Any) -> float:
    found = record.get("at")
    if isinstance(found, str):
        return datetime.fromisoformat(found).timestamp()
    return float(found or 0.0)


def _objective(trace: Trace | None) -> str | None:
    return None if trace is None else (trace.header.get("task") or {}).get("objective")


def _target(target: Any) -> str | list[str]:
    if isinstance(target, list):
        return [_text(each) for each in target]
    return "" if target is None else _text(target)


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        with suppress(ValueError):
            given = json.loads(given)
    return dict(given) if isinstance(given, Mapping) else {} if given is None else {"input": given}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _identity(*parts: str) -> str:
    return blake2b("\x00".join(parts).encode("utf-8", "surrogatepass"), digest_size=11).hexdigest()


def _add(log: zipfile.ZipFile, name: str, document: Any) -> None:
    entry = zipfile.ZipInfo(name, _ZIP_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    log.writestr(entry, json.dumps(document, ensure_ascii=True, separators=(",", ":")))
