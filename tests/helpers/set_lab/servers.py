"""The stores of the laboratory, and a Ray cluster of several nodes on this machine."""

import contextlib
import os
from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from needed import need_package
from places import ROOT
from postgres_server import PostgresServer

STORES = ("folder", "sqlite", "postgres")
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_DEDUP_LOGS": "0"}
_SOON = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}
"""How soon Ray sees that a node is dead: within some seconds, instead of a quarter of a minute."""
_MEMORY = 80 * 2**20


class Place:
    """A kind of store: it has an address for each round, and may have a server that can be stopped."""

    def __init__(self, kind: str, pattern: str = "", server: PostgresServer | None = None) -> None:
        self.kind = kind
        self.server = server
        self._pattern = pattern
        self._rounds = count()

    def address(self, folder: Path) -> str:
        """Return the address of a new store, for a round in `folder`."""
        match self.kind:
            case "folder":
                return str(folder / "set")
            case "sqlite":
                return f"sqlite:///{folder}/set.db"
        return self._pattern.format(f"lab{next(self._rounds)}")


@contextlib.contextmanager
def place(kind: str) -> Iterator[Place]:
    """Open a kind of store; a test is skipped if its server is not installed."""
    match kind:
        case "postgres":
            with PostgresServer() as server:
                yield Place(kind, server.url("{}"), server)
        case _:
            yield Place(kind)


class Nodes:
    """A Ray cluster: a head without slots, and nodes that can be lost."""

    def __init__(self, nodes: int) -> None:
        cluster_of: Any = import_module("ray.cluster_utils").Cluster
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _MEMORY, "_system_config": _SOON}
        self._cluster = cluster_of(initialize_head=True, head_node_args=head)
        self.address: str = self._cluster.address
        self.nodes: list[Any] = []
        for _ in range(nodes):
            self.add()

    def add(self) -> None:
        """Add a node with room for two slots."""
        self.nodes.append(self._cluster.add_node(num_cpus=2, object_store_memory=_MEMORY))

    def pids(self) -> list[int]:
        """Return the process ids of the nodes' raylets."""
        return [node.all_processes["raylet"][0].process.pid for node in self.nodes]

    def replace(self, pid: int) -> None:
        """Remove the node whose raylet was killed, and add another one."""
        lost = self.nodes.pop(self.pids().index(pid))
        self._cluster.remove_node(lost, allow_graceful=False)
        self.add()

    def close(self) -> None:
        """End all processes of the cluster."""
        self._cluster.shutdown()


@contextlib.contextmanager
def nodes(count: int = 2) -> Iterator[Nodes]:
    """Start a Ray cluster; a test is skipped if Ray is not installed."""
    need_package("ray")
    # Ray's sockets have paths of 67 characters below its folder, and a socket's path has at most 107 bytes.
    with TemporaryDirectory(prefix="ray-", dir="/tmp") as home, environment(RAY_TMPDIR=home):
        made = Nodes(count)
        try:
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def environment(**more: str) -> Iterator[None]:
    """Let processes that are started import the helpers, and let Ray be quiet."""
    wanted = {**QUIET, **more, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "helpers"), str(ROOT)])}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ |= wanted
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
