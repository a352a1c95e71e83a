"""What a branched run leaves behind: traces that link, verify, fork, and are taken up again."""

from collections import Counter
from pathlib import Path

import pytest
from toys.menu import Eats, Menu, eat, judged, last_letter
from toys.tree import BUDGET, assert_family_holds, children, choices

from refold import (
    BeamSearch,
    BestOfN,
    Decision,
    Engine,
    charge,
    effect,
    verify,
)
from refold.traces.file.append_only import FileStore


def test_replaying_and_verifying_a_branched_run_explores_nothing_anew(tmp_path: Path) -> None:
    ran: Counter[str] = Counter()

    def counted(name: str) -> str:
        ran[name] += 1
        return name

    async def score(state: Menu) -> float:
        ran["score"] += 1
        return await judged(state)

    class Counts(Eats):
        tools = {"dish": counted}

    module = Counts(Decision.branch([eat("a"), Decision.branch([eat("b"), eat("c")])]))
    engine = Engine(module, branch=BeamSearch(2, 3, score), traces=tmp_path, budget=BUDGET)
    result = engine.run("t")
    before = dict(ran)
    assert_family_holds(engine, result)
    assert engine.resume(result.trace).trace.data == result.trace.data
    assert [step.state["eaten"] for step in result.trace.steps] == [["c"]]
    assert verify(module, result.trace) == []
    assert dict(ran) == before
    files = sorted(path.name for path in tmp_path.rglob("*.trace.jsonl"))
    assert len(files) == 1 + len(children(result.trace))


def test_a_code_change_shows_in_the_children_it_concerns(tmp_path: Path) -> None:
    decisions = Decision.branch([eat("a"), eat("b")]), eat("m")
    engine = Engine(Eats(*decisions), branch=BestOfN(last_letter), traces=tmp_path)
    result = engine.run("t")

    class Changed(Eats):
        def decide(self, state: Menu) -> Decision:
            return Decision.final("sick") if "b" in state.eaten else super().decide(state)

    found = [bool(Engine(Changed(*decisions)).verify(trace)) for trace in (result.trace, *children(result.trace))]
    assert found == [False, False, True]


def test_a_child_that_was_not_begun_or_lost_its_file_is_run(tmp_path: Path) -> None:
    engine = Engine(Eats(Decision.branch([eat("a"), eat("b"), eat("c")])), branch=BestOfN(last_letter), traces=tmp_path)
    result = engine.run("t")
    path = result.trace.path
    assert path is not None
    opened = next(r.seq for r in result.trace.records if r.kind == "branch")
    first, second, third = [child.path for child in children(result.trace)]
    assert first is not None
    assert second is not None
    assert third is not None
    kept = first.read_bytes()
    path.write_bytes(b"".join(r.raw + b"\n" for r in result.trace.records[: opened + 1]))
    second.unlink()
    third.write_bytes(third.read_bytes()[:20])
    result = engine.resume(path)
    assert_family_holds(engine, result)
    assert result.state.eaten == ["c"]
    assert first.read_bytes() == kept


def test_a_child_that_cannot_be_written_fails_the_run_and_is_no_lost_candidate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = True
    write = FileStore.write

    def write_or_not(store: FileStore, data: bytes) -> None:
        if full and store.path is not None and store.path.name.endswith("~0.1.trace.jsonl") and b'"intent"' in data:
            raise OSError(28, "No space left on device")
        write(store, data)

    monkeypatch.setattr(FileStore, "write", write_or_not)
    module = Eats(Decision.branch([eat("a"), eat("b")]))
    module.tools = {"dish": effect(idempotent=True)(lambda name: name)}  # its sibling is cut off in one, or is not
    engine = Engine(module, branch=BestOfN(last_letter), traces=tmp_path)
    result = engine.run("t")
    assert result.error is not None
    assert result.error.type == "TraceWriteError"
    assert choices(result.trace) == []
    full = False
    result = engine.resume(result.trace)
    assert_family_holds(engine, result)
    assert result.state.eaten == ["b"]


def test_children_of_a_run_whose_trace_has_lost_its_end_are_taken_up(tmp_path: Path) -> None:
    ran: list[str] = []

    def counted(name: str) -> str:
        ran.append(name)
        charge(tokens_in=10)
        return name

    class Counts(Eats):
        tools = {"dish": counted}

    def engine(*names: str) -> Engine:
        module = Counts(eat("x"), Decision.branch([eat(name) for name in names]))
        return Engine(module, branch=BestOfN(last_letter, steps=1), traces=tmp_path)

    result = engine("a", "b").run("t")
    path = result.trace.path
    assert path is not None
    records = [record.raw + b"\n" for record in result.trace.records]
    decided = next(r.seq for r in result.trace.records if r.kind == "decide" and r.step == 1)
    for cut in (decided, decided + 1):
        path.write_bytes(b"".join(records[:cut]))
        again = engine("a", "b").resume(path)
        assert_family_holds(engine("a", "b"), again)
        assert (again.state, sorted(ran), again.usage.tokens) == (result.state, ["a", "b", "x"], 30)
    path.write_bytes(b"".join(records[:decided]))
    other = engine("a", "c").resume(path)
    assert_family_holds(engine("a", "c"), other)
    assert (other.state.eaten, sorted(ran)) == (["x", "c"], ["a", "b", "c", "x"])
    (aside,) = tmp_path.rglob("*.trace.jsonl.1")
    assert b'"name":"b"' in aside.read_bytes()
