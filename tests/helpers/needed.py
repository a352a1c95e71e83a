"""What a test needs beside refold: it is skipped where that is missing, and fails in CI."""

import os
from importlib.util import find_spec
from typing import NoReturn

import pytest


def need_package(*names: str) -> None:
    """Skip the test if a package is not installed."""
    for name in names:
        if find_spec(name) is None:
            missing(f"the package {name} is not installed: pip install -e '.[dev]'")


def missing(why: str) -> NoReturn:
    """Skip the test, or fail it in CI, where nothing may be missing."""
    if os.environ.get("CI"):
        pytest.fail(why, pytrace=False)
    pytest.skip(why)
