"""A setting of an Agent that a function computes in each turn."""

from collections.abc import Callable
from functools import partial
from inspect import Signature, isawaitable, iscoroutinefunction
from typing import Any

from ....engine import perform_as
from ....traces.errors import UsageError
from ..chat.json_forms import usage_from, usage_to_dict
from ..chat.usage import Usage
from ..chat.usage_scope import spending, spent
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

        The arguments `before` precede the state. The usage of generations and child runs in the function is added to
        the enclosing block of usage, also when a result is read from the trace.
        """
        if self.takes_run:
            recorded = await perform_as(self.setting, {}, self._with_usage(partial(self.fn, run())), idempotent=True)
            spent(usage_from(recorded["used"]) if "used" in recorded else None)
            return recorded["value"]
        found = self.fn(*before, state)
        return await found if isawaitable(found) else found

    def _with_usage(self, body: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function whose result also has the usage of generations inside."""

        def called() -> dict[str, Any]:
            with spending(alone=True) as inside:
                return _recorded(body(), inside.usage)

        async def awaited() -> dict[str, Any]:
            with spending(alone=True) as inside:
                return _recorded(await body(), inside.usage)

        return awaited if iscoroutinefunction(self.fn) or iscoroutinefunction(type(self.fn).__call__) else called


def _recorded(value: Any, used: Usage | None) -> dict[str, Any]:
    return {"value": value} if used is None else {"value": value, "used": usage_to_dict(used)}
