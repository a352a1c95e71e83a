"""What takes long to make, made by one worker for all."""

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Any]) -> tuple[Path, Any]:
    """Return a folder that `make` has filled, and the JSON value that it gave; the first worker to ask makes it.

    The folder is shared: copy what a test changes.
    """
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    ready = folder.with_name(f"{name}.json")
    with open(folder.with_name(f"{name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            folder.mkdir()
            value = make(folder)
            ready.write_text(json.dumps(value))
        return folder, json.loads(ready.read_text())
