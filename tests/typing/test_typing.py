"""The type checker takes what must be taken and refuses what must be refused."""

import re
import subprocess
import sys
from pathlib import Path

from places import ROOT

HERE = Path(__file__).parent
ACCEPTED = ["accepted.py", "accepted_agent.py", "accepted_editor.py"]
REJECTED = ["rejected.py", "rejected_agent.py", "rejected_editor.py"]


def test_what_users_write_is_accepted_and_mistakes_are_refused_where_they_are_made() -> None:
    """One run over all of them: without a cache, most of its time goes to what they import."""
    files = [str(HERE / name) for name in (*ACCEPTED, *REJECTED)]
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", str(ROOT / ".mypy_cache"), *files]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout
    errors = re.finditer(r"([a-z_]+\.py):(\d+): error: .*\[([a-z-]+)\]", said)
    expected = {
        (name, str(number), found[1])
        for name in REJECTED
        for number, line in enumerate((HERE / name).read_text().splitlines(), 1)
        if (found := re.search(r"# expect: (\S+)", line))
    }
    assert {error.groups() for error in errors} == expected, said
