"""The names of the page on policies are there, with the signatures, defaults and class facts that it states."""

import inspect
from typing import Any, get_args

import pytest

import refold.modules.policies as policies
from refold.modules.agent import Hook
from refold.modules.policies import SessionPolicy

REQUIRED = inspect.Parameter.empty
FUNCTIONS: dict[str, dict[str, Any]] = {
    "get_policy_class": {"name": REQUIRED},
    "register_policy": {"cls": REQUIRED, "name": None, "replace": False},
    "registered_policy_names": {},
    "resolve_policy": {"spec": REQUIRED},
}
KEYWORD_ONLY = {"register_policy": {"name", "replace"}}
CLASSES: dict[str, tuple[str, bool, str]] = {
    "InteractiveSessionPolicy": ("interactive", False, ""),
    "HeadlessSessionPolicy": ("headless", True, "auto"),
    "GuardSessionPolicy": ("guard", True, "guard"),
}
STRATEGIES = ("rubric_only", "intent_only", "intent_plus_calls", "intent_plus_outputs_summary", "full")
GUARD = {
    "rubric": None, "replace_default_rubric": False, "transcript_strategy": "intent_plus_calls", "on_deny": "retry",
    "on_judge_error": "deny", "always_allow": (), "always_deny": (), "max_steps": 100, "scope": None, "preset": None,
}  # fmt: skip
JUDGE = {"model": REQUIRED, "rubric": None, "replace_default_rubric": False, "model_params": None,
         "system_prompt": None, "cache": False}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_parameters_of_the_page(name: str) -> None:
    signature = inspect.signature(getattr(policies, name))
    assert {each.name: each.default for each in signature.parameters.values()} == FUNCTIONS[name]
    only = {each.name for each in signature.parameters.values() if each.kind is inspect.Parameter.KEYWORD_ONLY}
    assert only == KEYWORD_ONLY.get(name, set())


@pytest.mark.parametrize("name", CLASSES)
def test_policies_say_of_themselves_what_the_page_says(name: str) -> None:
    cls = getattr(policies, name)
    assert issubclass(cls, SessionPolicy)
    assert (cls.name, cls.is_autonomous, cls.display_label) == CLASSES[name]
    assert policies.get_policy_class(cls.name) is cls


def test_the_base_has_what_the_page_names() -> None:
    assert (SessionPolicy.name, SessionPolicy.is_autonomous, SessionPolicy.display_label) == ("", False, "")
    assert isinstance(inspect.getattr_static(SessionPolicy, "hooks"), property)
    policy = policies.HeadlessSessionPolicy()
    assert [each.name for each in policy.hooks] == ["stop_on_max_steps"]
    assert all(isinstance(each, Hook) for each in policy.get_hooks())


def test_a_guard_has_the_settings_and_defaults() -> None:
    fields = policies.GuardSessionPolicy.model_fields
    assert fields["judge_model"].is_required()
    assert {name: fields[name].default for name in GUARD} == GUARD
    assert {"cache", "ask_behavior"} <= set(fields)
    assert get_args(policies.GuardSessionPolicy.model_fields["transcript_strategy"].annotation) == STRATEGIES
    assert policies.HeadlessSessionPolicy().max_steps is None


def test_the_judge_is_made_and_asked_as_the_reference_says() -> None:
    parameters = inspect.signature(policies.ProcessJudge).parameters
    assert {name: parameters[name].default for name in JUDGE} == JUDGE
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in parameters.values())
    evaluate = inspect.signature(policies.ProcessJudge.evaluate).parameters
    assert list(evaluate)[1:4] == ["intent", "proposed_call", "context"]
    assert evaluate["context"].default is None
    assert policies.ProcessDecision("deny", "x").action == "deny"
