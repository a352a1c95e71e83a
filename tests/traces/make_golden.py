"""Records the traces that a release leaves for all later versions: `python tests/traces/make_golden.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from released_runs import ROOM, record

from refold import __version__

if __name__ == "__main__":
    for path in record(ROOM / __version__):
        print(path)
