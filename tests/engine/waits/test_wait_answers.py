"""Answers: what fits a schema or a type and what does not, what arrives, and that no secret comes along."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, Field

from refold import Action, Decision, Engine, RunResult, RunStatus, WaitRequest, ask, ask_sync
from refold.errors import UsageError, WaitAnsweredError
from refold.testing import scripted


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Approval(BaseModel):
    """What a person says."""

    approved: bool
    note: str = Field(default="", max_length=10)
    until: datetime | None = None


@dataclass
class Point:
    x: int
    y: int


NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}

TYPES: list[tuple[Any, Any, Any, list[Any]]] = [
    (bool, True, True, [1, "true", None]),
    (int, 3, 3, [True, 1.5, "3", None]),
    (float, 0.5, 0.5, ["0.5", True]),
    (str, "yes", "yes", [1, None]),
    (Literal["a", "b"], "b", "b", ["c", "A", None]),
    (Colour, "red", Colour.RED, ["green", "RED"]),
    (datetime, "2026-11-22T12:00:00Z", NOON, ["soon", 12, "2026-13-01T00:00:00Z"]),
    (date, "2026-11-22", date(2026, 11, 22), ["22.11.2026", 5]),
    (UUID, "12345678-1234-5678-1234-567812345678", UUID(int=0x12345678123456781234567812345678), ["x", 1]),
    (Decimal, "1.50", Decimal("1.50"), [None, []]),
    (list[int], [1, 2], [1, 2], [[1, "2"], 1, {}]),
    (dict[str, int], {"a": 1}, {"a": 1}, [{"a": "b"}, []]),
    (int | None, None, None, ["x", 1.5]),
    (
        Approval,
        {"approved": True, "until": "2026-11-22T12:00:00Z"},
        Approval(approved=True, until=NOON),
        [{}, {"approved": "yes"}, {"approved": True, "note": "much too long"}, True],
    ),
    (Point, {"x": 1, "y": 2}, Point(1, 2), [{"x": 1}, [1, 2]]),
    (Annotated[int, Field(ge=0, le=9)], 9, 9, [10, -1]),
    (SCHEMA, {"n": 1, "more": [None]}, {"n": 1, "more": [None]}, [{"n": 0}, {}, {"n": "1"}]),
    (None, [{"any": 1.5}], [{"any": 1.5}], []),
]
BY_TYPE = pytest.mark.parametrize(("kind", "good", "typed", "bad"), TYPES, ids=[str(each[0])[:40] for each in TYPES])


def asking(kind: Any, seen: list[Any]) -> Any:
    """Asks once from a tool, and once by decision."""

    async def asks() -> None:
        seen.append(await ask("?", kind))

    return scripted([Decision.act(Action("asks")), Decision.wait(prompt="?", schema=kind)], tools={"asks": asks})


def always(value: Any) -> Callable[[WaitRequest], Any]:
    return lambda request: value


def verified(engine: Engine, result: RunResult) -> RunResult:
    assert result.error is None
    result.trace.check()
    assert engine.verify(result.trace) == []
    return result


@BY_TYPE
def test_what_fits_arrives_typed_from_ask_and_as_json_from_a_decision(
    kind: Any, good: Any, typed: Any, bad: list[Any]
) -> None:
    seen: list[Any] = []
    engine = Engine(asking(kind, seen))
    second = verified(engine, engine.resume(engine.run("t").trace, good))
    assert seen[-1] == typed
    assert type(seen[-1]) is type(typed)
    last = verified(engine, engine.resume(second.trace, good))
    assert last.state.answers == [good]
    at_once = Engine(asking(kind, seen), on_wait=always(good))
    assert verified(at_once, at_once.run("t")).state == last.state
    assert seen[-1] == typed


@BY_TYPE
def test_what_does_not_fit_is_refused_and_the_run_keeps_waiting(
    kind: Any, good: Any, typed: Any, bad: list[Any]
) -> None:
    seen: list[Any] = []
    engine = Engine(asking(kind, seen))
    result = engine.run("t")
    for _ in range(2):
        before = result.trace.data
        for value in bad:
            with pytest.raises(WaitAnsweredError, match="is no answer to"):
                engine.resume(result.trace, value)
            assert result.trace.data == before
        again = engine.resume(result.trace)
        assert (again.waiting, again.trace.data) == (result.waiting, before)
        result = engine.resume(result.trace, good)
    assert result.status is RunStatus.completed
    for value in bad:
        unsure = Engine(asking(kind, seen), on_wait=always(value))
        assert verified(unsure, unsure.run("t")).status is RunStatus.waiting


@pytest.mark.parametrize(
    ("kind", "value", "form"),
    [
        (datetime, NOON, "2026-11-22T12:00:00Z"),
        (Approval, Approval(approved=False), {"approved": False, "note": "", "until": None}),
        (Colour, Colour.BLUE, "blue"),
        (Point, Point(3, 4), {"x": 3, "y": 4}),
        (None, (1, timedelta(minutes=1)), [1, "PT1M"]),
    ],
)
def test_answers_may_be_given_as_what_they_stand_for(kind: Any, value: Any, form: Any) -> None:
    engine = Engine(scripted([Decision.wait(prompt="?", schema=kind)]))
    assert verified(engine, engine.resume(engine.run("t").trace, value)).state.answers == [form]
    at_once = Engine(scripted([Decision.wait(prompt="?", schema=kind)]), on_wait=always(value))
    assert verified(at_once, at_once.run("t")).state.answers == [form]


def even(value: int) -> int:
    if value % 2:
        raise ValueError("odd")
    return value


Even = Annotated[int, AfterValidator(even)]


async def asks_for_even() -> Any:
    return await ask("?", Even)


def asks_for_even_sync() -> Any:
    return ask_sync("?", Even)


@pytest.mark.parametrize("tool", [asks_for_even, asks_for_even_sync])
def test_an_answer_that_only_the_type_refuses_is_asked_for_again_with_what_was_wrong(tool: Any) -> None:
    engine = Engine(scripted([Decision.act(Action("asks"))], tools={"asks": tool}))
    first = engine.run("t")
    second = verified(engine, engine.resume(first.trace, 3))
    third = verified(engine, engine.resume(second.trace, 5))
    asked = [result.waiting[0] for result in (first, second, third)]
    assert len({request.id for request in asked}) == 3
    assert [request.details.get("refused") for request in asked] == [None, *["Value error, odd"] * 2]
    with pytest.raises(WaitAnsweredError, match="is not of type"):
        engine.resume(third.trace, "four")
    with pytest.raises(WaitAnsweredError):
        engine.resume(third.trace, 4, request=asked[0].id)
    last = verified(engine, engine.resume(third.trace, 4))
    assert last.state.seen[0][0]["output"] == 4


def test_a_schema_is_checked_when_it_is_given() -> None:
    for schema in ({"type": "nothing"}, {"$ref": "https://example.org/x"}, {"minimum": math.nan}, object()):
        with pytest.raises(UsageError):
            Decision.wait(prompt="?", schema=schema)


# secrets

SECRET = "correct horse battery"


def test_secrets_are_replaced_in_answers_and_questions_alike() -> None:
    asked: list[WaitRequest] = []
    heard: list[Any] = []

    async def asks() -> Any:
        heard.append(await ask(f"Is {SECRET} right?", details={"shown": [SECRET]}))
        return heard[-1]

    def module() -> Any:
        wait = Decision.wait(f"because {SECRET}", prompt=f"What of {SECRET}?")
        return scripted([Decision.act(Action("asks")), wait], tools={"asks": asks})

    def answers(request: WaitRequest) -> Any:
        asked.append(request)
        return {"said": SECRET}

    engine = Engine(module(), redact={"PASS": SECRET}, on_wait=answers)
    at_once = verified(engine, engine.run("t"))
    engine = Engine(module(), redact={"PASS": SECRET})
    result = engine.run("t")
    while result.waiting:
        asked += result.waiting
        result = verified(engine, engine.resume(result.trace, {"said": SECRET}))
    for each in (at_once, result):
        assert SECRET.encode() not in each.trace.data
        assert each.state.answers == [{"said": "<redacted:PASS>"}]
    assert heard == [{"said": "<redacted:PASS>"}] * 2
    assert [request.prompt for request in asked] == [
        "Is <redacted:PASS> right?",
        "What of <redacted:PASS>?",
    ] * 2
    assert asked[0].details == {"in": "asks", "details": {"shown": ["<redacted:PASS>"]}}


def test_a_refused_answer_leaves_no_secret_behind(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(scripted([Decision.wait(prompt="?", schema=int)]), redact=[SECRET], on_wait=always(SECRET))
    result = engine.run("t")
    assert SECRET.encode() not in result.trace.data
    assert SECRET not in caplog.text

    def fails(request: WaitRequest) -> Any:
        raise ValueError(SECRET)

    failing = Engine(scripted([Decision.wait(prompt="?", schema=int)]), redact=[SECRET], on_wait=fails)
    assert SECRET.encode() not in failing.run("t").trace.data
    assert SECRET not in caplog.text
    with pytest.raises(WaitAnsweredError) as caught:
        engine.resume(result.trace, SECRET)
    assert SECRET not in str(caught.value)


def test_a_choice_that_is_a_secret_can_be_made() -> None:
    module = scripted([Decision.wait(prompt="Which?", schema={"enum": [SECRET, "other"]})])
    engine = Engine(module, redact={"PASS": SECRET})
    first = engine.run("t")
    assert first.waiting[0].schema == {"enum": ["<redacted:PASS>", "other"]}
    assert verified(engine, engine.resume(first.trace, SECRET)).state.answers == ["<redacted:PASS>"]
    at_once = Engine(module, redact={"PASS": SECRET}, on_wait=always(SECRET))
    assert verified(at_once, at_once.run("t")).state.answers == ["<redacted:PASS>"]
