"""The model of a turn: the run's, a function's or the Agent's."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ....traces.errors import UsageError
from ..generators.identifiers import get_generator, is_recordable
from ..generators.params import recorded_settings
from ..generators.protocol import Generator
from .setup import Setup
from .state import AgentState

MODEL, SETTINGS = "model", "settings"
"""The members of a run's overrides."""


def overrides_of(name: str, model: Any, settings: Any) -> dict[str, Any]:
    """Return the JSON form of one run's model and settings.

    The model is None if it must be passed again to resume the run: a generator, and an identifier that names a key, a
    server or a file, because a trace must not choose these. Raises UsageError for a model or settings that don't fit.
    """
    found: dict[str, Any] = {}
    if model is not None:
        get_generator(model)
        several = [model] if isinstance(model, str) else model if isinstance(model, list | tuple) else [model]
        is_plain = all(isinstance(each, str) and is_recordable(each) for each in several)
        found[MODEL] = (model if isinstance(model, str) else [*several]) if is_plain else None
    if settings is not None:
        found[SETTINGS] = recorded_settings(settings, f"settings of the run of {name!r}")
    return found


def own_generator(setup: Setup, overrides: Mapping[str, Any]) -> Generator | None:
    """Return a run's model before its first turn.

    None if a function chooses it. Raises UsageError if the run began with a model that its trace does not contain.
    """
    if setup.run_generator is not None:
        return setup.run_generator
    if MODEL not in overrides:
        return setup.generator
    if overrides[MODEL] is None:
        raise UsageError(
            f"The run of {setup.name!r} began with model=, and its trace does not contain that model. "
            "To fix: pass the same model= to resume, fork or make_engine."
        )
    return setup.generator_for(overrides[MODEL])


async def generator_of(setup: Setup, state: AgentState) -> Generator:
    """Return the model that a turn asks."""
    found = own_generator(setup, state.overrides)
    if setup.model is not None and setup.run_generator is None and MODEL not in state.overrides:
        model = await setup.model.value(state, partial(setup.run_context, state))
        if not isinstance(model, str | Generator | Sequence):
            raise UsageError(
                f"model= of the agent {setup.name!r} must return an identifier, a generator or a list of these, "
                f"got {model!r:.80}."
            )
        return setup.generator_for(model)
    if found is None:
        raise UsageError(f"The agent {setup.name!r} has no model. To fix: pass model= to the Agent, or to its run.")
    return found
