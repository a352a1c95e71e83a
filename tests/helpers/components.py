"""Programs that others wrote, which `.ci/components` installs: where they are, or why a test cannot run."""

import os
from pathlib import Path

import pytest


def component(name: str) -> str:
    """The command of that name. Without it a test is skipped, and fails where it must not be missing, in CI."""
    folder = os.environ.get("REFOLD_COMPONENTS")
    command = Path(folder or ".") / name
    if folder and command.exists():
        return str(command)
    where = f"{command} is not there" if folder else "REFOLD_COMPONENTS is not set"
    why = f"{name} is needed and {where}: export REFOLD_COMPONENTS=$(.ci/components)"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)
