"""Hooks: functions that are shown what happens to an agent, and may answer with a reaction."""

import inspect
import warnings
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeAlias, cast

from anyio import to_thread

from ..conditions import Condition, as_condition
from ..events.base import AgentEvent
from ..events.metrics import MetricSeries
from ..events.tool_events import ToolStart
from ..reactions import Reaction
from ..scorers import Scorer, as_scorer
from ..warnings import AgentWarning

EventTypes: TypeAlias = type[AgentEvent] | tuple[type[AgentEvent], ...]
HookFunction: TypeAlias = Callable[..., Reaction | Awaitable[Reaction | None] | None]
CountingFunction: TypeAlias = Callable[[Any, Any], tuple[Reaction | None, Any]]


class Hook(property):
    """A function of events, made by the decorator `hook`; what it returns or raises as a Reaction is obeyed.

    It is called for events of `event_type` and of its subclasses, if `condition` and all of `when` hold. `scorers`
    then add numbers to the event's `metrics`. A function that is not async runs in a worker thread.

    As a method it is bound to the instance that it is read from. A property to the eye, so that pydantic lets it stand
    in a model's class.

    What a hook did is journaled: a replay does not call it again, and a run that is resumed calls it again only where
    it was cut off inside of it.
    """

    def __init__(
        self,
        func: HookFunction,
        event_type: EventTypes,
        condition: Callable[[Any], Any] | None = None,
        *,
        when: Condition | Callable[[Any], Any] | Iterable[Condition | Callable[[Any], Any]] | None = None,
        scorers: Scorer | Callable[[Any], Any] | Iterable[Scorer | Callable[[Any], Any]] | None = None,
        name: str | None = None,
    ) -> None:
        types = event_type if isinstance(event_type, tuple) else (event_type,)
        for cls in types:
            if not (isinstance(cls, type) and issubclass(cls, AgentEvent)):
                raise TypeError(f"a hook listens to a class of events, such as ToolEnd, got {cls!r}")
        if not callable(func):
            raise TypeError(f"a hook is a function of an event, got {type(func).__name__}")
        super().__init__(func)
        self.func = func
        self.event_type = event_type
        self.condition = as_condition(condition) if condition is not None else None
        self.when = [as_condition(one) for one in _several(when)]
        self.scorers = [as_scorer(one) for one in _several(scorers)]
        self.name = name or str(getattr(func, "__name__", type(func).__name__))
        self.__name__ = self.name
        self.__doc__ = getattr(func, "__doc__", None)

    def __get__(self, instance: Any, owner: type | None = None) -> "Hook":
        if instance is None:
            return self
        return self._bound(partial(self.func, instance))

    def _bound(self, func: Callable[..., Any]) -> "Hook":
        return Hook(
            func,
            self.event_type,
            self.condition,
            when=self.when,
            scorers=self.scorers,
            name=self.name,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the hook on an event; await the result.

        With anything that is not an event it calls the function itself.
        """
        if len(args) == 1 and not kwargs and isinstance(args[0], AgentEvent):
            return self.react(args[0])
        return self.func(*args, **kwargs)

    def listens_to(self, event_type: type[AgentEvent]) -> bool:
        """Return whether events of this class are for it."""
        return issubclass(event_type, self.event_type)

    async def react(self, event: AgentEvent) -> Reaction | None:
        """Return its answer to an event.

        None if the event is not for it. Raises what the function raises.
        """
        if not isinstance(event, self.event_type):
            return None
        for condition in (*([self.condition] if self.condition is not None else []), *self.when):
            if not await condition.evaluate(event):
                return None
        for scorer in self.scorers:
            found = await scorer.score(event)
            event.metrics.setdefault(scorer.name, MetricSeries()).points.extend(MetricSeries.of(found).points)
        try:
            answer = await self._answer(event)
        except Reaction as raised:
            answer = raised
        if answer is None or isinstance(answer, Reaction):
            return answer
        if isinstance(event, ToolStart):
            raise TypeError(f"the hook {self.name!r} returned {type(answer).__name__}: return None to let a call pass")
        told = f"the hook {self.name!r} returned {type(answer).__name__}, which is not a reaction, and is not obeyed"
        warnings.warn(told, AgentWarning, stacklevel=2)
        return None

    async def _answer(self, event: AgentEvent) -> Any:
        if is_async(self.func):
            answer = self.func(event)
        else:
            answer = await to_thread.run_sync(self.func, event, abandon_on_cancel=True)
        return await answer if inspect.isawaitable(answer) else answer

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "Hook":
        """Itself, as a function's copy is: it holds no state of its own."""
        return self

    def __repr__(self) -> str:
        types = self.event_type if isinstance(self.event_type, tuple) else (self.event_type,)
        return f"<{type(self).__name__} {self.name} on {', '.join(cls.__name__ for cls in types)}>"


class CountingHook(Hook):
    """A pure hook that counts: `func(event, memory)` gives a reaction or None, and the memory from then on.

    The memory is any JSON value, None at first. It is part of the run's state: each run of each agent has its own, and
    a run that is resumed counts on. The function is called again in replays and on resume, with the memory and the
    event that it had: it depends on nothing else. It reads `event.timestamp` only with `clock=True`; else that is no
    part of the record. It must be sync and quick, as it runs in the event loop, and must not change what it is given.
    """

    def __init__(self, func: CountingFunction, event_type: EventTypes, *, name: str, clock: bool = False) -> None:
        super().__init__(cast(HookFunction, func), event_type, name=name)
        self.clock = clock

    def _bound(self, func: Callable[..., Any]) -> "Hook":
        return CountingHook(func, self.event_type, name=self.name, clock=self.clock)

    def count(self, event: AgentEvent, memory: Any) -> tuple[Reaction | None, Any]:
        """Return its answer to an event, and what it then remembers."""
        if not isinstance(event, self.event_type):
            return None, memory
        reaction, memory = cast(CountingFunction, self.func)(event, memory)
        return reaction, memory

    async def react(self, event: AgentEvent) -> Reaction | None:
        """Return its answer to the first event that it sees."""
        return self.count(event, None)[0]


def hook(
    event_type: EventTypes,
    condition: Callable[[Any], Any] | None = None,
    *,
    when: Condition | Callable[[Any], Any] | Iterable[Condition | Callable[[Any], Any]] | None = None,
    scorers: Scorer | Callable[[Any], Any] | Iterable[Scorer | Callable[[Any], Any]] | None = None,
) -> Callable[[HookFunction], Hook]:
    """Make a hook of a function or method, as in `@hook(ToolEnd)`.

    See Hook.
    """

    def decorate(func: HookFunction) -> Hook:
        return Hook(func, event_type, condition, when=when, scorers=scorers)

    return decorate


def is_async(func: Any) -> bool:
    """Return whether its result has to be awaited."""
    while isinstance(func, partial):
        func = func.func
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(getattr(func, "__call__", None))  # noqa: B004


def _several(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]
