"""The first example of the README: its agent is killed in a tool, and the command carries on, as the page shows."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readmes_agent_is_killed_and_carries_on_as_shown(
    terminal: Callable[..., Any], lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REFOLD_YES")  # the page says --yes
    (code,) = re.findall(r"^```python[^\n]*\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```console\n(\$ CRASH=1.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (lab / "trip.py").write_text(code)
    first, *printed = shown.splitlines()
    assert first == "$ CRASH=1 python trip.py"
    env = {**os.environ, "CRASH": "1"}
    python = [sys.executable, "-u"]  # prints each line at once, as it does at a terminal
    crashed = subprocess.run([*python, "trip.py"], env=env, capture_output=True, text=True, check=False)
    assert crashed.returncode == -signal.SIGKILL
    assert printed[:3] == [*crashed.stdout.splitlines(), "Killed"]

    resume, *dialog = printed[3:]
    (asked,) = (line for line in dialog if line.startswith("Which?"))
    prompt, answer = asked.rsplit(" ", 1)
    screen = terminal(*shlex.split(resume.removeprefix("$ refold ")))
    seen = screen.wait_for(f"{prompt} ")
    screen.type(f"{answer}\n")
    seen += screen.wait_for("completed")
    assert screen.end() == 0
    place = 0
    for line in (each for each in dialog if each != "..."):
        place = seen.index(line, place) + len(line)
    assert "booking Oslo" not in seen
    assert len(README.splitlines()) <= 120
