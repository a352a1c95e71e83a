"""What a user writes: a module whose hooks decide, act and reduce, and the checks made when its class is defined."""

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, get_args, get_origin, get_type_hints

from typing_extensions import TypeVar

from .effects.tools import run_actions
from .errors import EngineUsageError, ModuleDefinitionError, StateDefinitionError
from .loop.decision import Decision, Observation
from .state.model import StateModel, StateSchema
from .strategies.protocol import BranchStrategy
from .strategies.strategies import SelectFirst

if TYPE_CHECKING:
    from ..tasks import Task
    from .result import RunResult

S = TypeVar("S", bound=StateSchema)
MadeS = TypeVar("MadeS", bound=StateSchema, default=Any)

_HOOKS: dict[str, tuple[str, ...]] = {
    "decide": ("state", "candidate"),
    "act": ("state", "decision"),
    "reduce": ("state", "decision", "observation"),
}


class AgentModule(Generic[S]):
    """The loop of one kind of agent: subclass it as `AgentModule[YourState]` and write its hooks.

    `init_state(task, **inputs)` gives the first state, `decide(state)` a Decision (for `Decision.branch(3)` it is asked
    for three candidates: then it takes `candidate=None` too, and gets their numbers), `act(state, decision)` an
    Observation (the one given runs the decision's actions through `tools`), `reduce(state, decision, observation)`
    changes the draft it is passed, or returns the next state. All but `reduce` may be async; sync ones run in worker
    threads. Hooks are called by keyword. A module keeps no run state on itself: one instance serves many runs at
    once.

    Raises ModuleDefinitionError when a subclass's hooks could not be called.
    """

    tools: Mapping[str, Callable[..., Any]] = {}
    branch: BranchStrategy = SelectFirst()
    """How its branch decisions are decided, where the engine is not told otherwise."""
    state_class: ClassVar[type[StateSchema]] = StateSchema
    make_engine: ClassVar[Callable[..., Any]]
    """The Engine; filled by `engine`, so that modules need not know it."""
    _hook_names: ClassVar[dict[str, tuple[str, ...]]] = _HOOKS

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.state_class = _state_class(cls)
        cls._hook_names = {hook: _accepted(cls, hook, names) for hook, names in _HOOKS.items()}
        if "init_state" in cls.__dict__ and "task" not in inspect.signature(cls.init_state).parameters:
            raise ModuleDefinitionError(
                f"{cls.__name__}.init_state must take `task`: def init_state(self, task, **inputs)"
            )
        if inspect.iscoroutinefunction(cls.reduce) or inspect.isasyncgenfunction(cls.reduce):
            raise ModuleDefinitionError(
                f"{cls.__name__}.reduce must be a plain function: it computes, it does not wait"
            )

    if TYPE_CHECKING:
        init_state: Callable[..., S | Awaitable[S]]
    else:

        def init_state(self, task, **inputs):
            """The first state of a run; `task` is the objective, `inputs` are the task's inputs."""
            raise ModuleDefinitionError(f"{type(self).__name__} has no init_state(self, task, **inputs)")

    def decide(self, state: S) -> Decision | Awaitable[Decision]:
        """What to do next. The state is frozen; effects are allowed."""
        raise ModuleDefinitionError(f"{type(self).__name__} has no decide(self, state)")

    def act(self, state: S, decision: Decision) -> Any:
        """Carries out an act decision: runs its actions through `tools`.

        Awaitable, also as `await super().act(state, decision)`. One of your own gives an Observation or a JSON value.
        """
        return run_actions(self.tools, decision)

    def reduce(self, state: S, decision: Decision, observation: Observation) -> S | None:
        """Changes the draft `state` by what happened; returns None for the draft, or another state."""
        raise ModuleDefinitionError(f"{type(self).__name__} has no reduce(self, state, decision, observation)")

    def child_module(self, name: str, task: "Task") -> "AgentModule[Any] | None":
        """The module of a child run that `start_child` has begun under this name, when the run is resumed.

        None, which is what this one gives, leaves such a child where it stood.
        """
        return None

    def told_result(self, name: str, result: Any) -> Any:
        """The recorded form of a result that a person gives for a call of a tool, as `{"ran": result}`.

        The result itself, unless the module's tools wrap what they return. Raises ValueError, with what is wrong, for a
        result that the tool could not have given.
        """
        return result

    def run(self, task: "Task | str", **engine_options: Any) -> "RunResult[S]":
        """`Engine(self, **engine_options).run(task)`."""
        result: RunResult[S] = self.make_engine(self, **engine_options).run(task)
        return result

    async def arun(self, task: "Task | str", **engine_options: Any) -> "RunResult[S]":
        """`await Engine(self, **engine_options).arun(task)`."""
        result: RunResult[S] = await self.make_engine(self, **engine_options).arun(task)
        return result


class MakesModule(Protocol[MadeS]):
    """What is run by a module that it makes, as an Agent is."""

    def module(self) -> AgentModule[MadeS]:
        """The module."""
        ...


def module_of(given: "AgentModule[S] | MakesModule[S]") -> AgentModule[S]:
    """The module itself, or the one that an Agent makes; raises EngineUsageError for anything else."""
    make = None if isinstance(given, type | AgentModule) else getattr(given, "module", None)
    found: Any = make() if callable(make) else given
    if isinstance(found, AgentModule):
        return found
    kind = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
    raise EngineUsageError(f"Engine takes an AgentModule instance or an Agent, got {kind}; write Engine(MyModule())")


def _state_class(cls: type[AgentModule[Any]]) -> type[StateSchema]:
    for base in getattr(cls, "__orig_bases__", ()):
        origin = get_origin(base)
        if isinstance(origin, type) and issubclass(origin, AgentModule):
            (state,) = get_args(base)[:1] or (None,)
            if isinstance(state, type) and issubclass(state, StateSchema):
                _refuse_dataclasses(state)
                return state
            if isinstance(state, type):
                raise ModuleDefinitionError(
                    f"the state of {cls.__name__}, {state.__name__}, must derive from StateSchema"
                )
    if "init_state" in cls.__dict__:
        try:
            declared = get_type_hints(cls.init_state).get("return")
        except NameError:
            declared = None
        if isinstance(declared, type) and issubclass(declared, StateSchema):
            _refuse_dataclasses(declared)
            return declared
    return cls.state_class


def _refuse_dataclasses(state: type[StateModel], seen: frozenset[type] = frozenset()) -> None:
    """Raises StateDefinitionError where @dataclass has replaced the `__init__` of a state, or of a model in it."""
    for cls in state.__mro__:
        if "__dataclass_fields__" in vars(cls):
            raise StateDefinitionError(
                cls.__name__,
                "@dataclass replaces the __init__ that states and their models have; remove the decorator, and write "
                "`name: list[str] = []` in the place of `field(default_factory=list)`",
            )
    for field in state.model_fields.values():
        for model in _models_in(field.annotation):
            if model not in seen:
                _refuse_dataclasses(model, seen | {state})


def _models_in(annotation: Any) -> list[type[StateModel]]:
    if isinstance(annotation, type) and issubclass(annotation, StateModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _accepted(cls: type[AgentModule[Any]], hook: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Which of the names that the engine passes a hook takes; raises for a parameter that nobody fills."""
    signature = inspect.signature(getattr(cls, hook))
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return names
    for parameter in parameters:
        unfilled = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
        if parameter.name not in names and unfilled:
            near = get_close_matches(parameter.name, names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ModuleDefinitionError(
                f"{cls.__name__}.{hook} takes {parameter.name!r}, but the engine passes {', '.join(names)}{hint}"
            )
        if parameter.name in names and parameter.kind is parameter.POSITIONAL_ONLY:
            raise ModuleDefinitionError(f"{cls.__name__}.{hook}: {parameter.name!r} must not be positional-only")
    return tuple(name for name in names if name in signature.parameters)


def import_path(thing: type) -> str:
    """Where a class is imported from, as `package.module:Class`; a class of a script by the script's name."""
    name = _script_name() if thing.__module__ == "__main__" else thing.__module__
    return f"{name}:{thing.__qualname__}"


def _script_name() -> str:
    """What another process imports the running script as; `__main__` where nothing can, as in a notebook."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)  # python -m package.module
    stem = Path(getattr(main, "__file__", None) or "").stem
    return stem if stem.isidentifier() else "__main__"
