"""What tells a fork from its siblings, and which steps of an Agent were dear."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from toys.link_checker import LinkChecker
from view_server import serving

from refold import Engine
from refold.modules.agent import Agent, ScriptedGenerator, tool
from refold.testing import FakeClock


def test_forks_with_different_lists_have_different_labels(tmp_path: Path) -> None:
    engine = Engine(LinkChecker(FakeClock(1_700_000_000), 12, seed=7), traces=tmp_path, seed=1)
    source = engine.run("Check every link.").trace
    for ahead in (["/one"], ["/two"], ["/" + "x" * 60]):
        engine.fork(source, 1, {"/ahead": ahead})
    with serving(tmp_path) as asking:
        labels = {node["label"] for node in asking.get("family", id=source.run_id)["nodes"] if node["parent"]}
        (row,) = asking.get("runs")["rows"]
    assert labels == {'/ahead = ["/one"]', '/ahead = ["/two"]', "/ahead = 1 item"}
    assert (row["descendants"], row["forks"]) == (3, 3)


@tool
def look(at: str) -> str:
    """Look at a place."""
    return at


def test_a_run_names_its_dearest_steps_and_what_made_its_context_grow(tmp_path: Path) -> None:
    sent, costs = [1200, 2100, 9800, 9900, 300, 5000], [0.125, 0.25, 0.125, 1.0, 0.5, 0.125]
    turns: list[dict[str, Any]] = [
        {"calls": [{"look": {"at": at}} for at in (str(k), "again", "once more")][: k + 1]} for k in range(5)
    ]
    used = [
        {"prompt_tokens": tokens, "completion_tokens": 7, "total_tokens": tokens + 7, "cost_usd": cost}
        for tokens, cost in zip(sent, costs, strict=True)
    ]
    answers = [{**turn, "usage": usage} for turn, usage in zip([*turns, {"text": "Seen."}], used, strict=True)]
    Agent(name="a", model=ScriptedGenerator(answers), tools=[look], engine={"traces": tmp_path}).run_sync("Look")
    with serving(tmp_path) as asking:
        run = asking.get("run", id=asking.get("runs")["rows"][0]["id"])
    order = sorted(range(6), key=lambda k: (-costs[k], -sent[k]))[:5]
    assert [(each["k"], each["cost"], each["tokens_in"]) for each in run["dearest"]] == [
        (k, costs[k], sent[k]) for k in order
    ]
    more = {k + 1: after - before for k, (before, after) in enumerate(pairwise(sent))}
    assert [(each["k"], each["more"]) for each in run["growth"]] == [(k, more[k]) for k in (2, 5, 1)]
    assert [each["label"] for each in run["growth"]] == ["2 look", "3 look", "look 0"]
