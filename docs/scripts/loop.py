"""Draws the engine's loop for the documentation: `python docs/scripts/loop.py`.

It writes the diagram in `docs/internals/design.md`. Each transition is found by sending the loop each kind of answer.
"""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from refold import Action, AgentModule, Decision, Observation, StateSchema, StopReason
from refold.cli.render.mermaid import Box, mermaid
from refold.engine.loop.loop import Act, Adopted, Check, Choose, Commit, Decide, Wait, fold

PAGE = Path(__file__).parents[1] / "internals" / "design.md"
BEGIN, END = "<!-- the loop begins -->\n", "<!-- the loop ends -->\n"
_END = "End"
_REDUCE = "Reduce"
_ACT = Decision.act(Action("tool"))
_ANSWERS: dict[type, dict[str, Any]] = {
    Check: {"no stop reason": None, "a stop reason": StopReason.success},
    Decide: {
        "act": _ACT,
        "wait": Decision.wait(),
        "branch": Decision.branch([_ACT, _ACT]),
        "final": Decision.final("answer"),
    },
    Choose: {
        "candidate: act": _ACT,
        "candidate: wait": Decision.wait(),
        "candidate: branch": Decision.branch([_ACT, _ACT]),
        "candidate: final": Decision.final("answer"),
        "the state of a child run": Adopted(StateSchema()),
    },
    Act: {"results": Observation()},
    Wait: {"an answer": Observation(value=1)},
    Commit: {"written": None},
}
"""The kinds of answers to each request of the loop."""
_TEXTS = {
    _END: "the run ends",
    "Check": "stop criteria, budget",
    "Decide": "decide(state)",
    "Wait": "on_wait, or resume",
    "Choose": "the branch's strategy",
    "Act": "act(state, decision)",
    _REDUCE: "reduce(state, decision, observation)",
    "Commit": "the patch is written",
}


def transitions() -> list[tuple[str, str, str]]:
    """Return the loop's transitions: source, target and answer."""
    found: dict[tuple[str, str, str], None] = {}
    ways: deque[tuple[tuple[type, str], ...]] = deque([()])
    tried: set[tuple[type, str]] = set()
    while ways:
        way = ways.popleft()
        want, edges = _follow(way)
        found.update(dict.fromkeys(edges))
        for label in _ANSWERS[want] if want is not None else ():
            if (want, label) not in tried:
                assert want is not None
                tried.add((want, label))
                ways.append((*way, (want, label)))
    return _merged(found)


def diagram() -> str:
    """The loop as Mermaid."""
    kinds: dict[str, Any] = {"Decide": "hook", _REDUCE: "hook", "Act": "world", "Wait": "world", _END: "end"}
    boxes = [Box(name, kinds.get(name, "engine"), (name, text)) for name, text in _TEXTS.items()]
    return mermaid("The loop of a run", boxes, transitions())


def page() -> str:
    """The page, its diagram made anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n```mermaid\n{diagram()}```\n\n{END}{rest.partition(END)[2]}"


def _follow(way: tuple[tuple[type, str], ...]) -> tuple[type | None, list[tuple[str, str, str]]]:
    """Send the loop these answers; return the next request and last transition."""
    reduced: list[bool] = []

    class Reducing(AgentModule[StateSchema]):
        def reduce(self, state: StateSchema, decision: Decision, observation: Observation) -> None:
            reduced.append(True)

    loop = fold(Reducing(), StateSchema())
    want: Any = next(loop)
    edges: list[tuple[str, str, str]] = []
    for kind, label in way:
        reduced.clear()
        try:
            want = loop.send(_ANSWERS[kind][label])
        except StopIteration:
            return None, [(kind.__name__, _END, label)]
        edges = list(_edges(kind.__name__, type(want).__name__, label, bool(reduced)))
    loop.close()
    return type(want), edges


def _edges(source: str, target: str, label: str, reduced: bool) -> Iterator[tuple[str, str, str]]:
    if reduced:
        yield source, _REDUCE, label
        yield _REDUCE, target, "a state and a patch"
    else:
        yield source, target, label


def _merged(found: dict[tuple[str, str, str], None]) -> list[tuple[str, str, str]]:
    """Return one arrow for each pair of boxes.

    Its label has all answers that lead from one to the other.
    """
    labels: dict[tuple[str, str], list[str]] = {}
    for source, target, label in found:
        labels.setdefault((source, target), []).append(label)
    return [(source, target, ", ".join(each)) for (source, target), each in labels.items()]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
