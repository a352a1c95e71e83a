"""Prints the lowest version of each dependency, as constraints for pip.

These are the lowest versions that pyproject.toml allows.
"""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
EXTRAS = [name for name in PROJECT["optional-dependencies"] if name not in ("dev", "datasets")]

for requirement in (*PROJECT["dependencies"], *(r for name in EXTRAS for r in PROJECT["optional-dependencies"][name])):
    found = re.match(r"([A-Za-z0-9_.-]+)(?:\[[a-z0-9,]+\])?>=([0-9.]+)", requirement)
    if found:
        print(f"{found[1]}=={found[2]}")
    elif not requirement.startswith("refold["):
        raise SystemExit(f"pyproject.toml: {requirement!r} has no lower bound")
