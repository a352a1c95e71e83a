"""SIGKILL at random moments, of runs of every kind: the same end, and nothing done twice.

`dying` has waits, branches and parallel tools; `storming` what makes calls hard to tell apart.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from refold import Trace

sys.path.insert(0, str(Path(__file__).parent))
SCRIPTS: dict[str, Any] = {name: import_module(name) for name in ("dying", "storming")}

ROUNDS = int(os.environ.get("REFOLD_FAMILY_KILLS", "8"))
MOST = int(os.environ.get("REFOLD_FAMILY_KILLS_EACH", "8"))
FIRST = int(os.environ.get("REFOLD_FAMILY_KILLS_FROM", "0"))
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks processes")
_KEY = re.compile(r"\b[0-9a-f]{32}\b")


class Server:
    """Starts processes that run, or resume, in a folder, and kills them: forked from one that has imported all."""

    def __init__(self, script: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(script.__file__)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._read() == "ready"
        self.kills = 0

    def run(self, folder: Path, size: int = 1 << 60, seconds: float = 0.0) -> int:
        """Does one attempt, killed so long after it has written so much unless it is done; gives the exit code."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{folder}\t{size}\t{seconds}\n")
        self._process.stdin.flush()
        code = int(self._read())
        self.kills += code == -signal.SIGKILL
        return code

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


class Undisturbed:
    """A run that nobody kills: its state, what happened in the world, and how much it wrote."""

    def __init__(self, script: Any, folder: Path) -> None:
        result = script.settle(folder)
        assert result.error is None, result.error
        self.state = without_keys(result.state)
        self.world = world(folder)
        self.size = SCRIPTS["dying"].written(folder)


@pytest.fixture(scope="module", params=SCRIPTS)
def script(request: pytest.FixtureRequest) -> Any:
    return SCRIPTS[request.param]


@pytest.fixture(scope="module")
def server(script: Any) -> Iterator[Server]:
    server = Server(script)
    yield server
    server.close()
    with open(os.environ.get("REFOLD_FAMILY_KILLS_TO", os.devnull), "a") as file:
        file.write(f"{script.__name__} {server.kills}\n")


@pytest.fixture(scope="module")
def undisturbed(script: Any, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(script, tmp_path_factory.mktemp("undisturbed"))


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
    seed: int, tmp_path: Path, script: Any, server: Server, undisturbed: Undisturbed
) -> None:
    chance = random.Random(seed)
    for _ in range(chance.randint(1, MOST)):
        share = chance.choice([0.01, 0.05, 0.2, 0.8]) if MOST < 10 else chance.choice([0.005, 0.02, 0.1])
        code = server.run(tmp_path, int(chance.uniform(0, undisturbed.size * share)), chance.uniform(0, 0.003))
        assert code in (0, -signal.SIGKILL)
        if not code:
            break
    assert server.run(tmp_path) == 0
    path = SCRIPTS["dying"].root(tmp_path)
    engine = script.engine(tmp_path)
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
    tmp_path: Path, script: Any, server: Server, undisturbed: Undisturbed
) -> None:
    before = server.kills
    for part in range(1, 6):
        assert server.run(tmp_path, undisturbed.size // 12) == -signal.SIGKILL, f"after {part} twelfths"
    assert server.kills == before + 5
    assert server.run(tmp_path) == 0
