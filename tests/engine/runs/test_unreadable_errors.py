"""An error whose text, data or repr cannot be read is reported like any other, wherever a stranger's code raises it."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from refold import Action, AgentModule, Decision, Engine, Observation, RunStatus, StateSchema


class Unreadable(Exception):
    """As of a library that keeps a closed connection: each look at it fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class UnreadableData(Exception):
    @property
    def data(self) -> Any:
        raise OSError("the connection is closed")


class DataWithoutRepr(Exception):
    data = Unreadable()


def nested() -> Exception:
    error, data = ValueError("deep"), list[Any]()
    for _ in range(100_000):
        data = [data]
    error.data = data  # type: ignore[attr-defined]
    return error


class Count(StateSchema):
    said: list[str | None] = []


class Raises(AgentModule[Count]):
    """Raises `make()` in the hook or tool `where`."""

    def __init__(self, where: str = "", make: Callable[[], BaseException] = Unreadable) -> None:
        self.where, self.make = where, make
        self.tools = {"tool": lambda: self.at("tool")}

    def at(self, where: str) -> None:
        if where == self.where:
            raise self.make()

    def init_state(self, task: str) -> Count:
        self.at("init")
        return Count()

    def decide(self, state: Count) -> Decision:
        self.at("decide")
        if state.said:
            return Decision.final("done")
        return Decision.wait(prompt="?") if self.where == "on_wait" else Decision.act(Action("tool"))

    def reduce(self, state: Count, decision: Decision, observation: Observation) -> None:
        self.at("reduce")
        state.said += [result.error for result in observation.results]


def events(result: Any, name: str) -> list[Any]:
    return [
        record["data"]
        for record in map(orjson.loads, (record.raw for record in result.trace.records))
        if record["kind"] == "event" and record["name"] == name
    ]


@pytest.mark.parametrize(
    ("make", "message", "data"),
    [
        (Unreadable, "(its message cannot be read: RuntimeError)", None),
        (UnreadableData, "", "(its data cannot be read: OSError)"),
        (DataWithoutRepr, "", "<Unreadable, whose repr fails with RuntimeError>"),
        (nested, "deep", "<list, whose repr fails with RecursionError>"),
    ],
)
def test_of_a_tool_it_is_an_error_result(make: Callable[[], Exception], message: str, data: str | None) -> None:
    result = Engine(Raises("tool", make)).run("x")
    assert result.status is RunStatus.completed, result.error
    (effect,) = result.trace.steps[0].effects
    assert effect.error is not None
    assert (effect.error["message"], effect.error.get("data")) == (message, data)


def test_of_an_observer_it_drops_the_observer() -> None:
    class Observer:
        def __call__(self, record: Any) -> None:
            raise Unreadable

        def __repr__(self) -> str:
            raise Unreadable

        def __eq__(self, other: object) -> bool:
            raise Unreadable

        __hash__ = None  # type: ignore[assignment]

    result = Engine(Raises(), observers=[Observer()]).run("x")
    assert result.status is RunStatus.completed
    (event,) = events(result, "observer_dropped")
    assert event["observer"] == "<Observer, whose repr fails with Unreadable>"
    assert event["error"] == "<Unreadable, whose repr fails with RuntimeError>"


def test_the_error_of_an_observer_has_no_secrets() -> None:
    def observer(record: Any) -> None:
        raise ValueError("cannot log in with hunter2hunter2")

    result = Engine(Raises(), observers=[observer], redact={"PASSWORD": "hunter2hunter2"}).run("x")
    (event,) = events(result, "observer_dropped")
    assert event["error"] == "ValueError('cannot log in with <redacted:PASSWORD>')"
