"""Errors stand in eight families, and their names end in Error; nothing else's name does."""

import pkgutil
import re
from importlib import import_module
from typing import Any

import pytest
from places import ROOT

import refold
from refold import errors
from refold.errors import (
    DefinitionError,
    DivergenceError,
    EffectError,
    ExternalError,
    RefoldError,
    RunAbortedError,
    StateError,
    TaskError,
    TraceError,
    UsageError,
)

FAMILIES = (
    DefinitionError,
    UsageError,
    StateError,
    ExternalError,
    RunAbortedError,
    TraceError,
    TaskError,
    DivergenceError,
)
OF_DREADNODE = {
    "refold.modules.agent.AgentError",
    "refold.modules.agent.GenerationError",
    "refold.modules.agent.ToolError",
    "refold.modules.agent.events.AgentError",
    "refold.modules.agent.events.GenerationError",
    "refold.modules.agent.events.ToolError",
}
"""Events, whose names users of dreadnode know."""
SIGNALS = {"ToolSignal", "Stop", "Reaction", "Continue", "Fail", "Finish", "Retry", "RetryWithFeedback"}
"""Exceptions that steer a run when a tool or hook raises them, and report no error; dreadnode's names, too."""


def packages() -> list[str]:
    found = [each.name for each in pkgutil.walk_packages(refold.__path__, "refold.") if each.ispkg]
    return ["refold", *(name for name in found if not name.startswith("refold.cli")), "refold.errors"]


def public() -> list[tuple[str, str, Any]]:
    found = []
    for package in packages():
        room = import_module(package)
        found += [(package, name, getattr(room, name)) for name in getattr(room, "__all__", ())]
    return found


def is_error(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseException) and not issubclass(thing, Warning)


def test_every_public_exception_belongs_to_one_family() -> None:
    seen = 0
    for package, name, thing in public():
        if is_error(thing) and name not in SIGNALS and thing is not RefoldError:
            seen += 1
            assert sum(issubclass(thing, family) for family in FAMILIES) == 1, f"{package}.{name}"
    assert seen > 30


def test_every_error_of_ours_belongs_to_a_family_wherever_it_is_defined() -> None:
    defined = re.compile(r"^ *class (\w+)\(([^)]*)\)", re.MULTILINE)
    bases: dict[str, list[str]] = {}
    for room in ("engine", "modules", "refold", "tasks", "traces"):
        for path in (ROOT / room).rglob("*.py"):
            for name, of in defined.findall(path.read_text(encoding="utf-8")):
                bases.setdefault(name, []).extend(each.strip().rpartition(".")[2] for each in of.split(","))

    def ancestors(name: str, seen: frozenset[str] = frozenset()) -> set[str]:
        found = {base for base in bases.get(name, ()) if base not in seen}
        return found.union(*(ancestors(base, seen | found) for base in found))

    families = {family.__name__ for family in FAMILIES}
    ours = {name for name in bases if "RefoldError" in ancestors(name)} - families
    assert len(ours) > 70
    assert not {name for name in ours if not families & ancestors(name)}


def test_errors_end_in_error_and_data_does_not() -> None:
    for package, name, thing in public():
        place = f"{package}.{name}"
        if is_error(thing):
            assert thing.__name__.endswith("Error") or name in SIGNALS, place
        else:
            assert not name.endswith("Error") or place in OF_DREADNODE, place


def test_every_error_of_the_core_is_public_or_has_a_code() -> None:
    for room in ("traces", "tasks", "engine"):
        text = (ROOT / room / "errors.py").read_text(encoding="utf-8")
        own = import_module(f"refold.{room}.errors")
        for name in re.findall(r"^class (\w+Error)\(", text, re.MULTILINE):
            assert name in errors.__all__ or vars(getattr(own, name))["code"], (
                "an error has its code, or a public class"
            )
    for name in errors.__all__:
        assert (getattr(errors, name).__doc__ or "").strip(), name


def test_only_the_room_of_errors_defines_errors_of_the_core() -> None:
    for package, name, thing in public():
        if is_error(thing) and package.startswith(("refold.engine", "refold.tasks", "refold.traces")):
            pytest.fail(f"{package}.{name} stands in two rooms")


def test_the_room_of_errors_says_whose_fault_each_family_is() -> None:
    table = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", errors.__doc__ or "", re.MULTILINE)
    assert [name for name, _, _ in table] == [family.__name__ for family in FAMILIES]


def test_a_failed_effect_is_no_misuse() -> None:
    assert not issubclass(errors.NoRunError, EffectError)
    assert not issubclass(errors.EffectNotAllowedError, EffectError)
