"""An agent as a task: what an evaluation or a study calls with a goal."""

from ...tasks import Task
from .runs_goals import RunsGoals
from .trajectory.trajectory import Trajectory


class AgentTask:
    """`await task(goal)` runs the agent on the goal, in a conversation of its own, and gives the trajectory.

    Many may run at once, and the agent's own conversation stays as it is.
    """

    def __init__(self, agent: RunsGoals, *, name: str | None = None) -> None:
        self.agent = agent
        self.name = name or agent.name
        self.__name__ = self.name

    async def __call__(self, goal: str | Task) -> Trajectory:
        """Runs the agent on a goal."""
        agent = self.agent
        return await agent.run(goal, trajectory=Trajectory(agent_id=agent.agent_id, system_prompt=agent.instructions))

    async def run(self, goal: str | Task) -> Trajectory:
        """The same as calling it."""
        return await self(goal)

    def with_(self, *, name: str | None = None) -> "AgentTask":
        """The same task by another name."""
        return AgentTask(self.agent, name=name or self.name)

    def __repr__(self) -> str:
        return f"AgentTask({self.name!r})"
