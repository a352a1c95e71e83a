"""The protocol of executors."""

from typing import Protocol

from ..plan import SetPlan
from ..stop import Stop


class Executor(Protocol):
    """Starts the workers of one command, and waits until they have ended."""

    async def run(self, plan: SetPlan, stop: Stop) -> None:
        """Work on the set until it is done or stopped.

        The set is done when no task is left. A worker that dies is replaced while there is work; its tasks are claimed
        again when their leases run out.
        """
