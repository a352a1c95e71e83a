"""The changes of a step are counted by one rule, on every surface."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from view_server import Asking, flat_changes, runs_with_traces

from refold.cli import cli
from refold.cli.render.progress import Progress
from refold.traces import Change, Step, apply_patch
from refold.traces.export.markdown import markdown_lines
from refold.traces.export.otel import otel_spans
from refold.traces.export.parquet import rows_of
from refold.traces.json_patch.apply import same_json
from refold.traces.json_patch.changed import changed_between
from refold.traces.json_patch.diff import make_patch
from refold.view.pages.changes import change_tree


def printed(capsys: pytest.CaptureFixture[str], *args: str | Path) -> str:
    capsys.readouterr()
    assert cli([str(each) for each in args]) == 0
    return capsys.readouterr().out


def below_changes(lines: list[str]) -> int:
    """The number of changes in the lines of a step that come after its heading."""
    start = lines.index("changes") + 1 if "changes" in lines else len(lines)
    return sum(re.match(r"  [-+~] /", line) is not None for line in lines[start:])


def in_a_card(step: Step) -> int:
    html = step._repr_html_()
    more = re.search(r"and ([\d,]+) more changes", html)
    shown = len(re.findall(r">[+−~]</bdi></td>", html))
    return shown + (int(more[1].replace(",", "")) if more else 0)


def in_markdown(text: str) -> int:
    found = re.search(r"\nChanges:\n\n(`{3,})diff\n(.*?)\n\1", text, re.S)
    if found is None:
        return 0
    assert "more changes" not in text, "the runs of this test have few changes"
    removed, added = ({line[1:].split("  ")[0] for line in found[2].split("\n") if line[0] == sign} for sign in "-+")
    return len(removed | added)


@pytest.mark.wide
def test_all_surfaces_count_the_same_changes(asking: Asking, shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: set[int] = set()
    for row, trace in runs_with_traces(asking, shelf):
        if not row["steps"]:
            continue
        place = shelf / row["file"]
        table = [line for line in printed(capsys, "trace", "show", place).splitlines() if re.match(r"\s*\d+ {2}", line)]
        replayed = json.loads(printed(capsys, "replay", place, "--json"))["steps"]
        live, done = Progress(), {}
        for record in trace.records:
            step_done = live.take(record)
            if step_done is not None:
                done[step_done.index] = step_done.changed
        otel = {
            facts["refold.step.index"]: facts["refold.step.changes"]
            for facts in (dict(each.attributes or {}) for each in otel_spans([trace]))
            if facts.get("refold.run.id") == trace.run_id and "refold.step.changes" in facts
        }
        columns = {each["step"]: each["changed"] for each in rows_of(trace) if each["committed"]}
        for step in trace.steps:
            k, number = step.index, len(step.changes)
            page = asking.get("changes", id=row["id"], k=k)
            counts = {
                "page": page["count"],
                "rows of the page": len(list(flat_changes(page["tree"]))),
                "replay --json": len(replayed[k]["changes"]),
                "replay --step": below_changes(printed(capsys, "replay", place, "--step", str(k)).splitlines()),
                "live": done[k],
                "notebook": in_a_card(step),
                "otel": otel[k],
                "parquet": len(columns[k]),
            }
            assert counts == dict.fromkeys(counts, number), (row["file"], k)
            assert re.search(rf"  {number:,}(   *[\d.,]+ \w+)?\s*$", table[k]), (table[k], number)
            seen.add(number)
    assert len(seen) > 4, "runs with few and with many changes"


def test_markdown_has_the_same_changes(asking: Asking, shelf: Path) -> None:
    checked = 0
    for row, trace in runs_with_traces(asking, shelf):
        text = "".join(f"{line}\n" for line in markdown_lines(trace, full=True))
        parts = re.split(r"\n#+ Step \d+", text)[1:]
        for step, part in zip(trace.steps, parts, strict=False):
            assert in_markdown(part) == len({change.path for change in step.changes}), (row["file"], step.index)
            checked += 1
    assert checked > 30


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, "", "a", "b"]),
    lambda inside: st.lists(inside, max_size=6) | st.dictionaries(st.sampled_from("ab/~-"), inside, max_size=4),
    max_leaves=12,
)


def rows_of_tree(old: Any, new: Any) -> list[tuple[str, str]]:
    tree = change_tree(old, new, "s:0:", "s:1:")
    found = [(each["path"], each["change"]) for each in flat_changes(tree["tree"])]
    assert tree["count"] == len(found) + tree["more"]
    return found


@given(VALUES, VALUES)
def test_the_page_lists_what_the_rule_finds(old: Any, new: Any) -> None:
    changes = changed_between(old, new)
    assert rows_of_tree(old, new) == [(each.path, each.op) for each in changes]
    assert bool(changes) is not same_json(old, new)


@given(VALUES, VALUES)
def test_the_count_does_not_depend_on_what_the_documents_share(old: Any, new: Any) -> None:
    shared = apply_patch(json.loads(json.dumps(old)), make_patch(old, new))
    assert changed_between(old, shared) == changed_between(old, json.loads(json.dumps(new)))


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), min_size=1), unique_by=str), st.data())
def test_an_item_that_only_moved_is_no_change(items: list[Any], data: st.DataObject) -> None:
    gone = data.draw(st.sets(st.sampled_from(range(len(items))))) if items else set()
    left = [dict(item) for place, item in enumerate(items) if place not in gone]
    changes = changed_between({"items": items}, {"items": left})
    assert [(each.op, each.path) for each in changes] == [("remove", f"/items/{place}") for place in sorted(gone)]


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8), st.data())
def test_equal_items_are_paired_alike_whichever_objects_the_documents_share(
    old: list[int], new: list[int], data: st.DataObject
) -> None:
    items = [{"n": n, "large": 2**70} for n in old]
    mixed = [
        data.draw(st.sampled_from([*(each for each in items if each["n"] == n), {"n": n, "large": 2**70}])) for n in new
    ]
    assert changed_between(items, mixed) == changed_between(items, json.loads(json.dumps(mixed)))


def test_what_is_counted() -> None:
    assert changed_between({"current_step": 1, "n": 1}, {"current_step": 2, "n": 1}) == ()
    assert changed_between({"in": {"current_step": 1}}, {"in": {"current_step": 2}}) == (
        Change("/in/current_step", "replace", 1, 2),
    )
    assert [
        each.path for each in changed_between({"a": {"x": 1, "y": 2}}, {"a": {"y": 3, "x": 1}, "b": {"c": [1, 2]}})
    ] == [
        "/a/y",
        "/b",
    ]
    # a conversation whose oldest messages were dropped, and which has a new one
    messages = [{"role": "user", "content": str(n)} for n in range(9)]
    kept = [dict(each) for each in messages[3:]] + [{"role": "user", "content": "new"}]
    assert [(each.op, each.path) for each in changed_between({"messages": messages}, {"messages": kept})] == [
        ("remove", "/messages/0"),
        ("remove", "/messages/1"),
        ("remove", "/messages/2"),
        ("add", "/messages/6"),
    ]


def test_a_value_links_to_its_place_on_each_side() -> None:
    old, new = {"l": ["gone", {"v": "x" * 3000}, "end"]}, {"l": [{"v": "y" * 3000}, "end", "more"]}
    tree = change_tree(old, new, "s:4:", "s:5:")
    for each in flat_changes(tree["tree"]):
        for side, document in (("old", old), ("new", new)):
            if "at" in each.get(side, {}):
                value: Any = document
                for token in each[side]["at"].split("/")[1:]:
                    value = value[int(token)] if isinstance(value, list) else value[token]
                assert value.startswith(each[side]["value"])


def test_documents_deeper_than_the_rule_looks_are_compared_as_a_whole() -> None:
    deep, other = (json.loads("[" * 300 + number + "]" * 300) for number in "12")
    assert change_tree(deep, other, "s:0:", "s:1:")["count"] == len(changed_between(deep, other)) == 1
    assert changed_between([deep, 1], [1, deep]) != ()
