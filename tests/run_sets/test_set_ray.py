"""A set on Ray is done once, also if a node dies in the middle; what Ray would wait for in silence is refused."""

import os
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import pytest
from places import ROOT
from set_checks import STEPS, check, lines
from toys.counting import Counting

from refold import Task
from refold.errors import UsageError
from refold.modules.run_sets import run_set
from refold.modules.run_sets.executors.ray import Ray

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_DEDUP_LOGS": "0"}
SOON = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}
"""How soon Ray sees that a node is dead: within some seconds, instead of a quarter of a minute."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
if os.environ.get("CI") != "true":
    pytest.importorskip("ray", reason="the extra refold[ray] is not installed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster of two nodes on this machine, of which the head runs no actors."""
    before = {name: os.environ.get(name) for name in [*QUIET, "PYTHONPATH"]}
    os.environ |= {**QUIET, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "helpers"), str(ROOT)])}
    ray: Any = import_module("ray")
    cluster_of: Any = import_module("ray.cluster_utils").Cluster
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 80 * 2**20, "_system_config": SOON}
    made = cluster_of(initialize_head=True, head_node_args=head)
    made.add_node(num_cpus=2, object_store_memory=80 * 2**20)
    ray.init(address=made.address, logging_level="ERROR", log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def tasks_of(folder: Path, count: int) -> list[Task]:
    inputs = {"log": str(folder / "log"), "steps": STEPS, "seconds": 0.02}
    return [Task(id=f"t{n}", objective=f"task {n}", inputs=inputs) for n in range(count)]


def test_a_set_runs_on_ray(cluster: Any, tmp_path: Path) -> None:
    result = run_set(Counting(), tasks_of(tmp_path, 12), tmp_path / "set", executor=Ray(2), limits={"at_once": 6})
    assert result.is_completed
    check(tmp_path, 12)


def test_a_set_outlives_a_node(cluster: Any, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=2, resources={"doomed": 2}, object_store_memory=80 * 2**20)
    killed: list[psutil.Process] = []

    def kill() -> None:
        while lines(tmp_path) < 20:
            time.sleep(0.02)
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        killed.extend(raylet.children())
        raylet.kill()

    killer = threading.Thread(target=kill, daemon=True)  # it must not outlive a set that failed
    killer.start()
    result = run_set(
        Counting(),
        tasks_of(tmp_path, 40),
        tmp_path / "set",
        executor=Ray(4),
        limits={"at_once": 8, "attempts": 20},
        lease_seconds=3,
    )
    killer.join()
    cluster.remove_node(node, allow_graceful=False)
    assert result.is_completed
    check(tmp_path, 40)
    _, alive = psutil.wait_procs(killed, timeout=250)
    assert not [each for each in alive if "Slot" in each.name()]  # no zombie of the dead node is left


def test_slots_for_which_there_is_no_room_are_refused(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no room for 1 slots of .*gpu.*it has .*gpu 0"):
        run_set(Counting(), tasks_of(tmp_path, 1), tmp_path / "set", executor=Ray(resources={"gpu": 1}))
