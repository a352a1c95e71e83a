"""SIGKILL at random moments of a run with waits, branches and parallel tools: the same end, and nothing done twice."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from refold import Trace

sys.path.insert(0, str(Path(__file__).parent))
dying: Any = import_module("dying")

ROUNDS = int(os.environ.get("REFOLD_FAMILY_KILLS", "16"))
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks processes")


class Server:
    """Starts processes that run, or resume, in a folder, and kills them: forked from one that has imported all."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(dying.__file__)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._read() == "ready"
        self.attempts = self.kills = 0

    def run(self, folder: Path, seconds: float) -> int:
        """Does one attempt, killed after so many seconds unless it is done by then; gives the exit code."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{folder}\t{seconds}\n")
        self._process.stdin.flush()
        code = int(self._read())
        self.attempts += 1
        self.kills += code == -signal.SIGKILL
        return code

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()
    print(f"{server.kills} of {server.attempts} processes were killed")
    assert server.kills >= ROUNDS, "kills come while there is something to kill"


class Undisturbed:
    """A run that nobody kills: its state, what happened in the world, and how long it took."""

    def __init__(self, folder: Path) -> None:
        began = time.monotonic()
        result = dying.settle(folder)
        self.seconds = time.monotonic() - began
        assert result.error is None, result.error
        self.state = without_folder(result.state)
        self.world = world(folder)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    dying.settle(tmp_path_factory.mktemp("warm"))
    return Undisturbed(tmp_path_factory.mktemp("undisturbed"))


def without_folder(state: Any) -> Any:
    return {**state.to_dict(), "folder": ""}


def world(folder: Path) -> Counter[str]:
    """How often what happened; what may happen again (`look`) counts once for each key."""
    lines = [line.split(" ", 2) for line in (folder / "world.txt").read_text().splitlines()]
    looked = {(name, key): result for name, key, result in lines if name == "look"}
    return Counter([f"{name} {result}" for name, _, result in lines if name != "look"]) + Counter(
        f"look {result}" for result in looked.values()
    )


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_family_that_is_killed_comes_to_the_same_end(
    seed: int, tmp_path: Path, server: Server, undisturbed: Undisturbed
) -> None:
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 6)):
        code = server.run(tmp_path, chance.uniform(0.0, undisturbed.seconds * chance.choice([0.1, 0.5, 1.1])))
        assert code in (0, -signal.SIGKILL)
        if not code:
            break
    assert server.run(tmp_path, 60.0) == 0
    path = dying.root(tmp_path)
    engine = dying.engine(tmp_path)
    before = path.read_bytes()
    again = engine.resume(path)
    assert path.read_bytes() == before, "recovering twice gives what recovering once gives"
    assert without_folder(again.state) == undisturbed.state
    keys = Counter(
        line.split(" ")[1] for line in (tmp_path / "world.txt").read_text().splitlines() if line[:4] != "look"
    )
    assert set(keys.values()) == {1}, "what happened happened once"
    assert world(tmp_path) == undisturbed.world
    family = [Trace.load(each) for each in (tmp_path / "runs").rglob("*.trace.jsonl")]
    for trace in family:
        trace.check()
        assert engine.verify(trace) == [], trace
    ended = [e for t in family for s in t.steps for top in s.effects for e in top.walk() if not (e.open or e.cancelled)]
    keyed = Counter(effect.key for effect in ended)
    assert set(keyed.values()) == {1}
