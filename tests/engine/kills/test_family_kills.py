"""SIGKILL at random moments, of runs of every kind: the same end, and nothing done twice."""

import json
import os
import random
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crash_lab import ambiguous_run, mixed_run
from crash_lab.fork_server import ForkServer
from crash_lab.world import written

from refold import Trace

RUNS: dict[str, Any] = {"mixed": mixed_run, "ambiguous": ambiguous_run}
ROUNDS = int(os.environ.get("REFOLD_FAMILY_KILLS", "3"))
MOST = int(os.environ.get("REFOLD_FAMILY_KILLS_EACH", "4"))
FIRST = int(os.environ.get("REFOLD_FAMILY_KILLS_FROM", "0"))
_KEY = re.compile(r"\b[0-9a-f]{32}\b")


class Undisturbed:
    """A run that nobody kills: its state, what happened in the world, and how much it wrote."""

    def __init__(self, run: Any, folder: Path) -> None:
        result = run.settle(folder)
        assert result.error is None, result.error
        self.state = without_keys(result.state)
        self.world = world(folder)
        self.size = written(folder)


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest) -> Any:
    return RUNS[request.param]


@pytest.fixture(scope="module")
def server(run: Any) -> Iterator[ForkServer]:
    with ForkServer(run) as server:
        yield server
    with open(os.environ.get("REFOLD_FAMILY_KILLS_TO", os.devnull), "a") as file:
        file.write(f"{run.__name__} {server.kills}\n")


@pytest.fixture(scope="module")
def undisturbed(run: Any, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(run, tmp_path_factory.mktemp("undisturbed"))


def without_keys(state: Any) -> Any:
    """A state without its folder, its keys (which hold the run's id) by the order in which it has them."""
    found: dict[str, str] = {}
    text = json.dumps({**state.to_dict(), "folder": ""}).replace(state.folder, "")
    return json.loads(_KEY.sub(lambda match: found.setdefault(match[0], f"key {len(found)}"), text))


def world(folder: Path) -> Counter[str]:
    """How often what happened; what may happen again (`look`) counts once for each key."""
    lines = [line.split(" ", 2) for line in (folder / "world.txt").read_text().splitlines()]
    looked = {(name, key): result for name, key, result in lines if name == "look"}
    happened = [f"{name} {_KEY.sub('', result)}" for name, _, result in lines if name != "look"]
    return Counter(happened) + Counter(f"look {result}" for result in looked.values())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_a_run_that_is_killed_comes_to_the_same_end(
    seed: int, tmp_path: Path, run: Any, server: ForkServer, undisturbed: Undisturbed
) -> None:
    chance = random.Random(seed)
    for _ in range(chance.randint(1, MOST)):
        share = chance.choice([0.01, 0.05, 0.2, 0.8]) if MOST < 10 else chance.choice([0.005, 0.02, 0.1])
        code = server.kill_after(
            chance.uniform(0, undisturbed.size * share), "settle", tmp_path, seconds=chance.uniform(0, 0.003)
        )
        assert code in (0, -signal.SIGKILL)
        if not code:
            break
    assert server.run("settle", tmp_path) == 0
    path = mixed_run.root(tmp_path)
    assert path is not None
    engine = run.engine(tmp_path)
    before = path.read_bytes()
    again = engine.resume(path)
    assert path.read_bytes() == before, "recovering twice gives what recovering once gives"
    assert without_keys(again.state) == undisturbed.state
    keys = Counter(
        line.split(" ")[1] for line in (tmp_path / "world.txt").read_text().splitlines() if line[:4] != "look"
    )
    assert set(keys.values()) == {1}, "what happened happened once"
    assert world(tmp_path) == undisturbed.world
    used = Counter(key for key in _KEY.findall(json.dumps(again.state.to_dict())) if key in keys)
    assert set(used.values()) <= {1}, "each of equal requests has an outcome of its own"
    family = [Trace.load(each) for each in (tmp_path / "runs").rglob("*.trace.jsonl")]
    for trace in family:
        trace.check()
        assert engine.verify(trace) == [], trace
    ended = [e for t in family for s in t.steps for top in s.effects for e in top.walk() if not (e.open or e.cancelled)]
    keyed = Counter(effect.key for effect in ended)
    assert set(keyed.values()) == {1}


def test_kills_come_while_there_is_something_to_kill(
    tmp_path: Path, run: Any, server: ForkServer, undisturbed: Undisturbed
) -> None:
    server.assert_kills_hit(tmp_path, "settle", undisturbed.size)
