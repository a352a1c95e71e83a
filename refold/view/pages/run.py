"""One run beside its steps, and its steps as rows and columns."""

from typing import Any

from ...traces.index.indexed import IndexedTrace
from ...traces.index.step_facts import RARE, StepFacts
from .nodes import Json, Nodes
from .problems import wrong
from .requests import request_json

_ENGINE = ("/current_step",)
"""What the engine counts itself, and is no news."""
_COLUMNS = 4_000
_ROWS = 500


def run(trace: IndexedTrace, row: Json, *, actions_allowed: bool) -> Json:
    """Return all that is known of a run beside its steps."""
    with trace.lock:
        header, ending, tally = trace.header, trace.ending(), trace.tally
        end = ending.record or {}
        task: dict[str, Any] = dict(header.get("task") or {})
        nodes = Nodes(trace.value)
        open_ = trace.open_facts()
        budget = trace.budget()
        error = end.get("error")
        criteria = (end.get("task_result") or {}).get("criteria") or ()
        version = trace.version
        longest = trace.query(
            "SELECT k, seconds, label FROM steps WHERE trace = ? AND seconds IS NOT NULL ORDER BY seconds DESC LIMIT 5"
        )
        failing = [k for (k,) in trace.query("SELECT k FROM steps WHERE trace = ? AND errors > 0 ORDER BY k LIMIT 20")]
        if open_ is not None and open_.errors and len(failing) < 20:
            failing.append(open_.k)
        requests = open_requests(trace, {request["id"] for request in ending.waiting})
        size = trace.query("SELECT stop - offset FROM snapshots WHERE trace = ? ORDER BY offset DESC LIMIT 1")
        patterns = tally.patterns
        errors = tally.errors + (open_.errors if open_ is not None else 0)
        return {
            **row,
            "problem": trace.problem.reason if trace.problem is not None else row["problem"],
            "status": "damaged" if trace.problem is not None else row["status"],
            "errors": errors,
            "steps": trace.count,
            "state_class": header.get("state") or "",
            "seed": _exact(header.get("seed")),
            "versions": header.get("versions") or {},
            "inputs": task.get("inputs") or {},
            "task_document": task or None,
            "budget": {
                name: budget.get(name) for name in ("max_steps", "max_runtime_seconds", "max_tokens", "max_cost_usd")
            },
            "answer": nodes.node(end["final_result"], "end:/final_result")
            if end.get("final_result") is not None
            else None,
            "error": None
            if error is None
            else {"type": error["type"], "message": error["message"], "traceback": error.get("traceback")},
            "criteria": [
                {"criterion": each["criterion"], "passed": each.get("passed"), "evidence": each.get("evidence")}
                for each in criteria
            ],
            "requests": requests,
            "attempts": [{"attempt": number, "at": at, "step": step} for number, at, step in tally.attempts],
            "first_at": header.at,
            "open": open_.k if open_ is not None else None,
            "counts": {
                "records": tally.records,
                "actions": tally.actions,
                "effects": tally.effects,
                "events": tally.events,
                "waits": tally.waits,
                "branches": tally.branches,
            },
            "longest": [{"k": k, "seconds": seconds, "label": label} for k, seconds, label in longest],
            "failing": failing,
            "changed_most": [
                {"path": path, "changes": count}
                for path, count in patterns.most_common(8 + len(_ENGINE))
                if path not in _ENGINE
            ][:8],
            "state_bytes": size[0][0] if size else 0,
            "actions_allowed": actions_allowed,
            "version": version,
        }


def open_requests(trace: IndexedTrace, ids: set[str]) -> list[Json]:
    """Return the open requests of a run; they are in the step under way."""
    if not ids or trace.open_facts() is None:
        return []
    found: dict[str, Json] = {}
    for record in trace.records(trace.count):
        if record.kind == "wait":
            for request in record["requests"]:
                if request["id"] in ids:
                    found.setdefault(request["id"], request_json(request, trace.count, record.at))
    return list(found.values())


def _exact(number: Any) -> Any:
    """Return an integer that JavaScript holds exactly, otherwise the nearest one that it has."""
    return number if not isinstance(number, int) or abs(number) <= 2**53 else float(number)


def columns(trace: IndexedTrace, first: int, stop: int, count: int) -> Json:
    """Return the columns of the overview, of the window, and of the charts."""
    if not 1 <= count <= _COLUMNS:
        raise wrong(f"n is 1 to {_COLUMNS}, not {count}")
    with trace.lock:
        open_ = trace.open_facts()
        total = trace.count + (open_ is not None)
        first, stop = max(0, min(first, total)), max(0, min(stop, total))
        steps = max(0, stop - first)
        n = min(count, steps)
        found: Json = {"from": first, "to": stop, "n": n}
        names = ("first", "seconds", "tokens", "cost", "sum_seconds", "sum_tokens", "sum_cost")
        found |= {name: [] for name in names} | {"mode": ""}
        if not n:
            return found
        rows = trace.query(
            "SELECT (k - ?2) * ?4 / (?3 - ?2) AS c, min(k), max(coalesce(seconds, 0)), max(tokens_in + tokens_out), "
            "max(coalesce(cost, 0)), max(sum_seconds), max(sum_tokens_in + sum_tokens_out), max(sum_cost), "
            "min(CASE mode WHEN 'E' THEN 0 WHEN 'W' THEN 1 WHEN 'B' THEN 2 WHEN 'F' THEN 3 ELSE 4 END) "
            "FROM steps WHERE trace = ?1 AND k >= ?2 AND k < ?3 GROUP BY c ORDER BY c",
            (first, stop, n),
        )
        # A column covers the steps k with the same (k - first) * n // (stop - first): its first one is worked out.
        by_column = {row[0]: row[1:] for row in rows}
        if open_ is not None and stop > trace.count:
            last = (trace.count - first) * n // steps
            by_column[last] = _with_open(by_column.get(last), open_)
        modes: list[str] = []
        for column in range(n):
            row = by_column.get(column)
            if row is None:
                continue
            for name, value in zip(names, (row[0], *row[1:7]), strict=True):
                found[name].append(value)
            modes.append(RARE[row[7]])
        found["mode"] = "".join(modes)
        found["n"] = len(modes)
        return found


def _with_open(row: Any, facts: StepFacts) -> tuple[Any, ...]:
    tokens, cost = facts.tokens_in + facts.tokens_out, facts.cost or 0.0
    sums = (facts.sum_seconds, facts.sum_tokens_in + facts.sum_tokens_out, facts.sum_cost)
    mine = (facts.k, facts.seconds or 0.0, tokens, cost, *sums, RARE.index(facts.mode))
    if row is None:
        return mine
    return (row[0], *(max(a, b) for a, b in zip(row[1:7], mine[1:7], strict=True)), min(row[7], mine[7]))


def step_row(facts: StepFacts, committed: bool) -> Json:
    """Return one line of the list of steps."""
    return {
        "k": facts.k,
        "mode": facts.kind,
        "label": facts.label,
        "errors": facts.errors,
        "seconds": facts.seconds,
        "usage": {"tokens_in": facts.tokens_in, "tokens_out": facts.tokens_out, "cost": facts.cost},
        "actions": facts.actions,
        "changes": facts.changes,
        "committed": committed,
        "at": facts.at,
    }


def steps(trace: IndexedTrace, first: int, stop: int) -> list[Json]:
    """Return the rows of some steps."""
    first = max(0, first)
    with trace.lock:
        count = trace.count
        return [step_row(facts, facts.k < count) for facts in trace.facts(first, min(stop, first + _ROWS))]


def find(trace: IndexedTrace, first: int, modes: str, back: bool) -> int | None:
    """Return the next step from `first`, itself included, whose mode is one of `modes`; backwards if told so."""
    wanted = [mode for mode in modes if mode in RARE]
    if not wanted:
        raise wrong(f"mode is made of the characters {RARE}, not {modes!r}")
    marks = ", ".join("?" * len(wanted))
    with trace.lock:
        open_ = trace.open_facts()
        fits = open_ is not None and open_.mode in wanted
        if back and fits and first >= trace.count:
            return trace.count
        order, sign = ("DESC", "<=") if back else ("ASC", ">=")
        found = trace.query(
            f"SELECT k FROM steps WHERE trace = ? AND k {sign} ? AND mode IN ({marks}) ORDER BY k {order} LIMIT 1",
            (first, *wanted),
        )
        if found:
            return int(found[0][0])
        return trace.count if fits and not back and first <= trace.count else None
