"""The command of the laboratory: `python -m set_lab.command FILE` does the work in a file, or what is left of it."""

import sys
from pathlib import Path

from .work import Work, run

if __name__ == "__main__":
    result = run(Work.read(Path(sys.argv[1])))
    print(result, flush=True)
    sys.exit(0 if result.is_completed else 3)
