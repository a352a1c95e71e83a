"""`python -m set_lab`: play rounds, print a line for each, and exit with 1 and the seed if one fails."""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from .rounds import Round, play
from .servers import STORES, environment, nodes, place


def main() -> int:
    """Play the rounds that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m set_lab", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--steps", type=int, default=4, help="steps of each task")
    parser.add_argument("--store", choices=STORES, default="folder")
    parser.add_argument("--executor", choices=("inline", "local", "ray"), default="local")
    parser.add_argument("--nodes", type=int, default=2, help="nodes of the Ray cluster, beside its head")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first round; the others follow")
    parser.add_argument(
        "--kinds", default="", help="what is killed: driver,worker,node,server; by default all there are"
    )
    parser.add_argument("--folder", type=Path, default=None, help="where rounds are kept that failed")
    given = parser.parse_args()
    home = given.folder or Path(tempfile.mkdtemp(prefix="refold-set-lab-"))
    played: list[Round] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(environment())
        where = stack.enter_context(place(given.store))
        cluster = stack.enter_context(nodes(given.nodes)) if given.executor == "ray" else None
        print(f"{given.store}, {given.executor}, {given.tasks} tasks of {given.steps} steps, in {home}", flush=True)
        for seed in range(given.seed, given.seed + given.rounds):
            folder = home / f"{given.store}-{given.executor}-{seed}"
            done = play(
                seed,
                folder,
                where,
                executor=given.executor,
                tasks=given.tasks,
                steps=given.steps,
                nodes=cluster,
                only=[kind for kind in given.kinds.split(",") if kind],
            )
            played.append(done)
            print(f"{done}, load {os.getloadavg()[0]:.1f}", flush=True)
            if done.is_good:
                shutil.rmtree(folder)
    return _told(played)


def _told(played: list[Round]) -> int:
    killed = Counter(each.split(" ")[0] for done in played for each in done.kills)
    failed = [done for done in played if not done.is_good]
    kills = ", ".join(f"{count} of a {kind}" for kind, count in sorted(killed.items()))
    gave_up = Counter(said for done in played for said in done.gave_up)
    print(f"{len(played)} rounds, {killed.total()} kills ({kills}), {len(failed)} failed")
    for said, count in gave_up.most_common():
        print(f"{count} commands ended by themselves and said: {said}")
    for done in failed:
        print(f"failed with --seed {done.seed}: {'; '.join(done.problems[:20])}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
