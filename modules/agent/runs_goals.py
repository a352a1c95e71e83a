"""What running a goal needs of an Agent, so that the files that run one need not know the Agent's own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol
from uuid import UUID

from ...engine import Engine
from ...tasks import Task
from .events import AgentEvent, AgentStep
from .generators.protocol import Generator
from .hooks.hook import Hook
from .options import AgentOptions
from .trajectory.trajectory import Trajectory


class RunsGoals(Protocol):
    """An Agent, as `run`, `batch` and `task` see it; the Agent's own docstrings say what each is."""

    name: str
    agent_id: UUID
    instructions: str | None
    concurrency: int
    tools: list[Any]
    engine: AgentOptions | None
    trajectory: Trajectory

    @property
    def generator(self) -> Generator:
        """See Agent."""

    @property
    def all_hooks(self) -> list[Hook]:
        """See Agent."""

    def make_engine(self, *, earlier: Sequence[AgentStep] = ()) -> Engine:
        """See Agent."""

    def reset(self) -> Trajectory:
        """See Agent."""

    async def run(self, goal: str | Task, *, reset: bool = True, trajectory: Trajectory | None = None) -> Trajectory:
        """See Agent."""

    def stream(
        self, goal: str | Task, *, reset: bool = True, trajectory: Trajectory | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[AgentEvent]]:
        """See Agent."""
