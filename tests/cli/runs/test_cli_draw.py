"""Diagrams show the module that is named; the names in them are text, whatever they are."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from refold import AgentModule, Decision, RuntimeBudget, StateSchema
from refold.cli.draw.loop_diagram import transitions
from refold.cli.draw.mermaid import mermaid
from refold.cli.draw.module_diagram import module_diagram
from refold.cli.draw.svg import svg

HOSTILE = 'a"]; click x href "javascript:alert(1)"\n</text><script>alert(1)</script>`**b**` & #quot; \u202e\x1b[31m'
_NS = "{http://www.w3.org/2000/svg}"


def drawn(tools: dict[str, Any], name: str = "m:M", **limits: Any) -> tuple[str, str]:
    class Some(AgentModule[StateSchema]):
        def init_state(self, task: str) -> StateSchema:
            return StateSchema()

        def decide(self, state: StateSchema) -> Decision:
            return Decision.final("x")

        def reduce(self, state: StateSchema, decision: Decision, observation: Any) -> None: ...

    module = Some()
    module.tools = tools
    diagram = module_diagram(module, RuntimeBudget(**limits), name)
    return mermaid(diagram), svg(diagram)


def test_a_module_is_drawn_with_its_tools_and_limits(refold: Callable[..., Any], lab: Path) -> None:
    text = refold("draw", "agents:Counter", "--max-cost", 2).out
    assert text.startswith("flowchart TD\n")
    for part in ("look(x)", "sleep(seconds)", "20 steps", "2 US dollars", "CountState", "init#95;state(task, upto)"):
        assert part in text
    assert refold("draw", "agents:Counter", "--svg", "m.svg").lines == ["wrote m.svg, 4.4 kB"]
    texts = [each.text for each in ElementTree.parse("m.svg").iter(f"{_NS}text")]
    assert {"look(x)", "final"} <= set(texts)
    assert "exists already" in refold("draw", "agents:Counter", "--svg", "m.svg").err
    assert "agents has no 'Conter'; did you mean Counter?" in refold("draw", "agents:Conter").err


def test_an_agent_is_drawn_too(refold: Callable[..., Any], lab: Path) -> None:
    (lab / "mine.py").write_text(
        "from refold.modules.agent import Agent, tool\n"
        "@tool\ndef greet(name: str) -> str:\n    'Greets.'\n    return name\n"
        "agent = Agent(name='a', model='none/x', tools=[greet], max_steps=7)\n"
    )
    text = refold("draw", "mine:agent").out
    assert "greet(" in text
    assert "7 steps" in text


@pytest.mark.parametrize("place", ["tool", "title"])
def test_hostile_names_are_text(place: str) -> None:
    chart, picture = drawn({HOSTILE: len}) if place == "tool" else drawn({}, HOSTILE)
    for line in chart.splitlines()[1:]:
        label = re.sub(r'"[^"]*"', "", line)
        assert re.fullmatch(r"    (accTitle: [\w .,:-]*|\w+[\[({]+[\])}]+|\w+ -->(\|\|)? \w+)", label), line
    assert not re.search(r"[<>`\\]", re.sub("-->|<br/>", "", chart))
    root = ElementTree.fromstring(picture)
    assert {each.tag.removeprefix(_NS) for each in root.iter()} <= {
        *("svg", "title", "style", "defs", "marker", "path", "rect", "text")
    }
    names = {name for each in root.iter() for name in each.attrib}
    assert not any(name.startswith("on") or "href" in name for name in names)
    assert "\x1b" not in picture
    assert "\u202e" not in picture


def test_many_tools_are_counted() -> None:
    chart, _ = drawn({f"tool{number}": len for number in range(50)})
    assert "and 20 more tools" in chart


def test_the_loop_has_these_transitions() -> None:
    found = {(source, target) for source, target, _ in transitions()}
    assert found == {
        *(("Check", "Decide"), ("Check", "End")),
        *(("Decide", "Act"), ("Decide", "Wait"), ("Decide", "Choose"), ("Decide", "Reduce")),
        *(("Choose", "Act"), ("Choose", "Wait"), ("Choose", "Choose"), ("Choose", "Reduce"), ("Choose", "Commit")),
        *(("Act", "Reduce"), ("Wait", "Reduce"), ("Reduce", "Commit"), ("Commit", "Check")),
    }
