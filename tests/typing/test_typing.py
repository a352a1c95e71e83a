"""The type checker takes what must be taken and refuses what must be refused."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

HERE = Path(__file__).parent


def mypy(name: str) -> str:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--no-error-summary",
        "--cache-dir",
        str(ROOT / ".mypy_cache"),
        str(HERE / name),
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout


@pytest.mark.parametrize("name", ["accepted.py", "accepted_agent.py"])
def test_what_users_write_is_accepted(name: str) -> None:
    assert mypy(name) == ""


@pytest.mark.parametrize("name", ["rejected.py", "rejected_agent.py"])
def test_mistakes_are_refused_where_they_are_made(name: str) -> None:
    lines = (HERE / name).read_text().splitlines()
    expected = {(i, m[1]) for i, line in enumerate(lines, 1) if (m := re.search(r"# expect: (\S+)", line))}
    errors = re.finditer(rf"{re.escape(name)}:(\d+): error: .*\[([a-z-]+)\]", mypy(name))
    assert {(int(m[1]), m[2]) for m in errors} == expected
