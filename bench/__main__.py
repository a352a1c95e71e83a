"""`python -m bench`: measures every figure, prints a table, and writes JSON on request."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from .agent import agent
from .crowd import crowd
from .explore import explore
from .figure import QUICK, Figure, Sizes
from .fork import forks
from .game import game
from .imports import imports
from .load import loads
from .mcp_calls import mcp_calls
from .memory import memory
from .report import as_json, show
from .size import trace_bytes
from .steps import growth, step_times

GROUPS: dict[str, Callable[[Sizes], Iterator[Figure]]] = {
    "step": step_times,
    "growth": growth,
    "bytes": trace_bytes,
    "load": loads,
    "fork": forks,
    "import": imports,
    "crowd": crowd,
    "memory": memory,
    "explore": explore,
    "game": game,
    "mcp": mcp_calls,
    "agent": agent,
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the benchmark; the exit code is 0 whether or not the goals are met: that is for people to judge."""
    parser = argparse.ArgumentParser("python -m bench", description="refold, against the least that could be done.")
    parser.add_argument("--quick", action="store_true", help="small runs, few repeats: a first look")
    parser.add_argument("--only", metavar="NAME", action="append", choices=GROUPS, help=f"some of {', '.join(GROUPS)}")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON too; - for standard output, no table")
    parser.add_argument(
        "--dreadnode",
        metavar="PYTHON",
        default=os.environ.get("DREADNODE_PYTHON"),
        help="an interpreter that has dreadnode, to run the Agent's loop there too (or DREADNODE_PYTHON)",
    )
    options = parser.parse_args(arguments)
    if options.dreadnode and shutil.which(options.dreadnode) is None:
        parser.error(f"there is no interpreter {options.dreadnode}")
    sizes = replace(QUICK if options.quick else Sizes(), peer=options.dreadnode)
    figures = list[Figure]()
    with Console(stderr=True).status("measuring") as status:
        for name in options.only or GROUPS:
            status.update(f"measuring {name}")
            figures += GROUPS[name](sizes)
    if options.json != "-":
        show(figures, Console())
    if options.json:
        document = as_json(figures, sizes)
        if options.json == "-":
            sys.stdout.buffer.write(document)
        else:
            Path(options.json).write_bytes(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
