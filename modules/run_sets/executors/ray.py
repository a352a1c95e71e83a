"""Workers on a Ray cluster: one async actor for each slot.

Each actor is started once, and claims its tasks from the table. Ray places and restarts actors, and is given no task. A
worker outlives its node: when a raylet is killed, its actors keep running while Ray restarts them elsewhere. Three
fences stop such a zombie: the epoch that every append checks, the actor's check of its parent process, and the length
of the lease.
"""

import contextlib
import importlib
import os
import pickle
import secrets
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from ....errors import ExternalError, ExtraMissingError, UsageError
from ....traces.stores import TaskTable, open_store
from ..plan import SetPlan
from ..stop import Stop
from ..worker import Worker

PARENT_SECONDS = 0.2
"""How often an actor looks whether its raylet still is its parent."""
_LOOK_SECONDS = 0.2


class Ray:
    """Runs a set on a Ray cluster.

    `slots` is the number of actors, by default one for each free CPU; the set's `at_once` is shared among them. Each
    actor takes `num_cpus` and `resources`, by which Ray places it. `address` names a running cluster ("auto" finds
    one); without it, an initialized Ray is used, or one is started here and ended afterwards. All nodes must reach the
    set's store: a folder serves one machine, a database or object storage serves several.
    """

    def __init__(
        self,
        slots: int | None = None,
        *,
        address: str | None = None,
        num_cpus: float = 1,
        resources: Mapping[str, float] | None = None,
    ) -> None:
        if slots is not None and (type(slots) is not int or slots < 1):
            raise UsageError(f"slots must be a whole number of at least 1, got {slots!r}")
        self.slots = slots
        self.address = address
        self.num_cpus = num_cpus
        self.resources = dict(resources or {})

    async def run(self, plan: SetPlan, stop: Stop) -> None:
        """Work on the set; see `Executor`."""
        ray = _import_ray()
        with _connected(ray, self.address):
            needs = {**({"CPU": self.num_cpus} if self.num_cpus else {}), **self.resources}
            slots = min(self._slots(ray.cluster_resources(), needs), plan.limits.at_once)
            await _drive(ray, plan, stop, slots, {"num_cpus": self.num_cpus, "resources": self.resources})

    def _slots(self, has: Mapping[str, float], needs: Mapping[str, float]) -> int:
        """Return the number of actors.

        Raises UsageError if the cluster can never place them, for which Ray would wait without an error.
        """
        room = min((int(has.get(name, 0) // amount) for name, amount in needs.items() if amount), default=1)
        if room < (self.slots or 1):
            have = ", ".join(f"{name} {has.get(name, 0):g}" for name in needs)
            raise UsageError(
                f"the Ray cluster has no room for {self.slots or 1} slots of {dict(needs)}: it has {have}; ask for "
                "fewer slots or resources, or add nodes"
            )
        return self.slots or room


class Slot:
    """The actor: one worker in the event loop of its process."""

    def __init__(self, plan: bytes, path: list[str], number: str, share: int) -> None:
        sys.path[:] = [*sys.path, *(each for each in path if each not in sys.path)]
        self._plan = plan
        self._number = number
        self._share = share
        self._stop: Stop | None = None
        self._said: str | None = None
        threading.Thread(target=_leave_with_parent, name="raylet's death", daemon=True).start()

    async def work(self) -> None:
        """Work on the set until nothing is left.

        An actor that was restarted starts with new claims.
        """
        plan: SetPlan = pickle.loads(self._plan)
        self._stop = Stop()
        self._obey()
        store = open_store(plan.where)
        number = f"{self._number}.{secrets.token_hex(3)}"
        try:
            await Worker(plan, store, self._stop, number=number, at_once=self._share).run()
        finally:
            store.close()

    async def stop(self, said: str) -> None:
        """Stop the worker: "drain" or "cut"."""
        self._said = said
        self._obey()

    def _obey(self) -> None:
        if self._stop is not None and self._said is not None:
            (self._stop.cut if self._said == "cut" else self._stop.drain)()


def _leave_with_parent() -> None:
    """End this process at once when its raylet has died.

    Ray would let the process run for ever.
    """
    parent = os.getppid()
    while True:
        time.sleep(PARENT_SECONDS)
        if os.getppid() != parent:
            os._exit(1)


async def _drive(ray: Any, plan: SetPlan, stop: Stop, slots: int, options: Mapping[str, Any]) -> None:
    at_once = plan.limits.at_once
    blob = ray.cloudpickle.dumps(plan)
    actor = ray.remote(Slot).options(max_restarts=-1, max_task_retries=-1, **options)
    made = [
        actor.remote(blob, sys.path, str(number), at_once // slots + (number < at_once % slots))
        for number in range(slots)
    ]

    def tell() -> None:
        if stop.draining:
            for slot in made:
                slot.stop.remote("cut" if stop.cutting else "drain")

    stop.on_change(tell)
    tell()
    left = [slot.work.remote() for slot in made]
    store = open_store(plan.where)
    try:
        while left:
            done, left = await to_thread.run_sync(partial(ray.wait, left, timeout=_LOOK_SECONDS))
            for each in done:
                await to_thread.run_sync(_outcome, ray, each)
            if not await to_thread.run_sync(_has_work, store.tasks(plan.set_id), stop.draining):
                # the other slots see this within a second; one whose node was lost may wait for a place for ever
                await to_thread.run_sync(partial(ray.wait, left, num_returns=len(left), timeout=2.0) if left else int)
                break
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            for slot in made:
                slot.stop.remote("cut")
            await to_thread.run_sync(partial(ray.wait, left, num_returns=len(left), timeout=plan.lease_seconds))
        raise
    finally:
        store.close()
        for slot in made:
            ray.kill(slot)


def _has_work(table: TaskTable, draining: bool) -> bool:
    """Return whether the set has tasks to wait for.

    These are all tasks that have not ended. While the set is `draining`, no further task starts, so only running tasks
    count.
    """
    if draining:
        return any(row.held for row in table.rows(status="running"))
    return any(each.tasks for each in table.counts() if each.status in ("queued", "running"))


def _outcome(ray: Any, ref: Any) -> None:
    try:
        ray.get(ref)
    except ray.exceptions.RayTaskError as error:
        raise ExternalError(f"a slot on the Ray cluster could not work: {error.cause or error}") from error
    except ray.exceptions.RayActorError as error:
        raise ExternalError(f"a slot on the Ray cluster was lost for good: {error}") from error


@contextlib.contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    if ray.is_initialized():
        yield
        return
    ray.init(address=address, logging_level="ERROR", log_to_driver=False, include_dashboard=None if address else False)
    try:
        yield
    finally:
        ray.shutdown()


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends statistics to its makers unless told otherwise
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise ExtraMissingError("the executor ray", "ray", "ray") from error
    return ray
