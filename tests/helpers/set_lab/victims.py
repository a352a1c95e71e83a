"""What is killed in a round: a worker, the driver, a node of the Ray cluster, or the server of the store."""

import contextlib
import random
import signal
from collections.abc import Callable

import psutil

from .servers import Nodes, Place

DRIVER = "driver"
_STOPS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "killed": signal.SIGKILL}


def kinds(executor: str, place: Place) -> list[str]:
    """Return what can be killed below this executor and store."""
    more = {"local": ["worker"], "ray": ["worker", "node"]}.get(executor, [])
    return [DRIVER, *more, *(["server"] if place.server is not None else [])]


def kill(kind: str, driver: psutil.Process, place: Place, nodes: Nodes | None, chance: random.Random) -> str | None:
    """Kill one victim of a kind; return what it was, None if there was none just now."""
    if kind == DRIVER:
        return _killed([driver], "driver", chance)
    if kind == "worker":
        found = _slots(nodes) if nodes is not None else _spawned(driver)
        return _killed(found, "worker", chance)
    if kind == "node" and nodes is not None:
        pid = chance.choice(nodes.pids())
        psutil.Process(pid).kill()
        nodes.replace(pid)
        return "node"
    if kind == "server" and place.server is not None:
        how = chance.choice(sorted(_STOPS))
        place.server.stop(_STOPS[how])
        place.server.start()
        return f"server ({how})"
    return None


def workers(driver: psutil.Process, nodes: Nodes | None) -> list[psutil.Process]:
    """Return the processes that work on the set now."""
    return _slots(nodes) if nodes is not None else _spawned(driver)


def _spawned(driver: psutil.Process) -> list[psutil.Process]:
    return _matching(driver.children, lambda line: "spawn_main" in line)


def _slots(nodes: Nodes | None) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for pid in nodes.pids() if nodes is not None else ():
        with contextlib.suppress(psutil.NoSuchProcess):
            found += _matching(psutil.Process(pid).children, lambda line: line.startswith("ray::Slot"))
    return found


def _matching(children: Callable[[], list[psutil.Process]], matches: Callable[[str], bool]) -> list[psutil.Process]:
    found = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if matches(" ".join(child.cmdline())):
                    found.append(child)
    return found


def _killed(found: list[psutil.Process], name: str, chance: random.Random) -> str | None:
    for process in chance.sample(found, len(found)):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
            return name
    return None
