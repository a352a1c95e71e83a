"""A setting of an Agent that a function computes in each turn."""

from collections.abc import Callable
from functools import partial
from inspect import Signature, isawaitable
from typing import Any

from ....engine import perform_as
from ....traces.errors import UsageError
from ..tools.run_context import RunContext, is_run_context
from ..tools.schema import function_signature


class PerTurn:
    """A function that computes a setting of an Agent in each turn.

    `fn(state)` is called again by resume and verification. `fn(run)`, whose parameter is a RunContext, is an idempotent
    effect: verification reads its recorded result. Both can be async. Raises UsageError if `fn` does not take
    `expected` arguments.
    """

    @classmethod
    def of(cls, setting: str, value: Any) -> Any:
        """Return a function as a PerTurn, and any other value unchanged."""
        return cls(setting, value) if callable(value) else value

    def __init__(self, setting: str, fn: Callable[..., Any], expected: int = 1) -> None:
        self.setting = setting
        self.fn = fn
        self.signature: Signature = function_signature(fn, setting)
        parameters = list(self.signature.parameters.values())
        try:
            self.signature.bind(*[None] * expected)
        except TypeError as error:
            words = "fn(state) or fn(run: RunContext)" if expected == 1 else "fn(messages, state)"
            raise UsageError(f"{setting}= must be a value or {words}, got {fn!r:.80}: {error}.") from error
        self.takes_run = any(is_run_context(each.annotation) for each in parameters[:expected])
        if self.takes_run and expected > 1:
            raise UsageError(f"{setting}= takes the state, not a RunContext, got {fn!r:.80}.")

    async def value(self, state: Any, run: Callable[[], RunContext[Any]], *before: Any) -> Any:
        """Return the setting for the turn that begins with `state`.

        The arguments `before` precede the state or the run.
        """
        if self.takes_run:
            return await perform_as(self.setting, {}, partial(self.fn, *before, run()), idempotent=True)
        found = self.fn(*before, state)
        return await found if isawaitable(found) else found
