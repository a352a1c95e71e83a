"""A folder of a stranger: any run id, any name of a file, any figure; no run takes the list with it."""

import os
from pathlib import Path

import pytest
from hostile_traces import write_run
from view_server import serving


def test_a_comma_separates_no_values(tmp_path: Path) -> None:
    for name in ("a", "b", "a,b"):
        write_run(tmp_path / f"{name}.trace.jsonl", {}, [], [], module=f"m:{name}", task={"id": name, "objective": ""})
    with serving(tmp_path) as asking:
        assert asking.get("totals", id="a,b")["runs"] == 1
        assert asking.get("totals", id=["a,b", "b"])["runs"] == 2
        for asked, found in (("a,b", ["a,b"]), (["a", "b"], ["a", "b"])):
            assert [row["id"] for row in asking.get("runs", task=asked, sort="task")["rows"]] == found
        assert [row["id"] for row in asking.get("runs", module="m:a,b")["rows"]] == ["a,b"]


def _link(folder: Path, name: bytes, content: bytes) -> None:
    """Write a file whose name need not be text."""
    os.makedirs(os.path.dirname(os.fsencode(folder) + b"/" + name), exist_ok=True)
    with open(os.fsencode(folder) + b"/" + name, "wb") as file:
        file.write(content)


def test_a_name_that_is_no_text_is_a_row_like_others(tmp_path: Path) -> None:
    write_run(tmp_path / "good.trace.jsonl", {}, [], [])
    write_run(tmp_path / "child.trace.jsonl", {}, [])
    child = (tmp_path / "child.trace.jsonl").read_bytes()
    try:
        _link(tmp_path, b"bad\xff.trace.jsonl", b"x\n")
    except OSError:
        pytest.skip("this file system has no names that are not UTF-8")
    _link(tmp_path, b"empty\xff.trace.jsonl", b"")
    _link(tmp_path, b"b\xff.branches/kid.trace.jsonl", child.replace(b'"child"', b'"kid"'))
    _link(tmp_path, b"set\xff/sets.sqlite", b"x")
    _link(tmp_path, b"eval\xff/evaluation.json", b"{}")
    _link(tmp_path, b"eval\xff/runs/other.trace.jsonl", b"x\n")
    for _ in range(2):  # the second time from the index
        with serving(tmp_path) as asking:
            found = {row["id"]: row for row in asking.get("runs", flat="true")["rows"]}
            assert found.keys() == {"good", "child", "kid", "bad\\udcff", "empty\\udcff", "other"}
            assert found["bad\\udcff"]["file"] == "bad\\udcff.trace.jsonl"
            assert (found["bad\\udcff"]["status"], found["empty\\udcff"]["status"]) == ("corrupt", "interrupted")
            for name, row in found.items():
                answer = asking.http.get("/api/run", params={"id": name})
                assert answer.status_code == (200 if row["steps"] else 409), (row, answer.text)
            asking.get("sets")
            asking.get("evaluations")


def test_a_folder_whose_name_is_no_text_is_shown(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/root\xff"))
    try:
        root.mkdir()
    except OSError:
        pytest.skip("this file system has no names that are not UTF-8")
    write_run(root / "good.trace.jsonl", {}, [], [])
    with serving(root) as asking:
        assert asking.get("runs")["folder"].endswith("root\\udcff")
        assert asking.get("run", id="good")["path"].endswith("root\\udcff/good.trace.jsonl")
        asking.get("sets")
        (root / "good.trace.jsonl").write_bytes(b"x\n")
        assert asking.http.get("/api/run", params={"id": "good"}).status_code == 409


def test_figures_beyond_64_bits_are_answered(tmp_path: Path) -> None:
    used = {"tokens_in": 2**53 - 1, "tokens_out": 2**53 - 1, "cost": 1e308}
    calls = [{"kind": "intent", "phase": "act", "name": "f", "digest": "0" * 16, "key": f"k{n}"} for n in range(2_100)]
    first = 3
    ends = [{"kind": "outcome", "intent": first + n, "result": n, "usage": used} for n in range(2_100)]
    write_run(tmp_path / "a.trace.jsonl", {"messages": []}, [*calls, *ends], [])
    with serving(tmp_path) as asking:
        for question in ({"from": 0, "to": 9}, {"from": 0, "to": 9, "n": 9, "k": 0}):
            for name in ("run", "runs", "steps", "columns", "step", "chat"):
                answer = asking.http.get(f"/api/{name}", params={"id": "a", **question})
                assert answer.status_code in (200, 400), (name, answer.text)


def test_a_folder_or_traces_that_have_gone_are_told(tmp_path: Path) -> None:
    root, other = tmp_path / "runs", tmp_path / "other"
    root.mkdir()
    with serving(root) as asking:
        assert asking.get("runs")["problem"] is None
        with asking.events() as events:
            next(events)
            root.rename(other)
            assert next(events)["type"] == "hello", "pages ask again"
        assert asking.get("runs")["problem"] == f"{root} does not exist any more"
        root.write_text("a file in its place")
        asking.viewer.folder.scan()
        assert asking.get("runs")["problem"] == f"{root} cannot be read: Not a directory"
        root.unlink()
        other.rename(root)
        asking.viewer.folder.scan()
        assert asking.get("runs")["problem"] is None
    path = tmp_path / "one.trace.jsonl"
    write_run(path, {}, [], [])
    with serving(tmp_path, [path]) as asking:
        assert asking.get("runs")["problem"] is None
        path.unlink()
        asking.viewer.folder.scan()
        found = asking.get("runs")
        assert (found["total"], found["problem"]) == (0, "the traces do not exist any more")
