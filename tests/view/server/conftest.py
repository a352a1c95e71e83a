"""Runs of every kind, made once, and a server that shows them."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_traces import record_all
from view_server import Asking, serving


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Traces of every kind, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("recorded")
    before = list(sys.path)
    try:
        return record_all(folder)
    finally:
        sys.path[:] = before


@pytest.fixture(scope="session")
def shelf(recorded: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder with the traces of every kind, as copies."""
    folder = tmp_path_factory.mktemp("shelf")
    for name, path in recorded.items():
        if name in ("cut", "resumed"):  # the same run id again
            shutil.copy(path, folder / f"{name}.trace.jsonl")
            continue
        for each in path.parent.iterdir():
            if each.name.startswith("."):
                continue
            target = folder / each.name
            if each.is_dir():
                shutil.copytree(each, target, dirs_exist_ok=True)
            else:
                shutil.copy(each, target)
    return folder


@pytest.fixture(scope="session")
def asking(shelf: Path) -> Iterator[Asking]:
    """A server of the shelf."""
    assert not os.environ.get("XDG_CACHE_HOME")
    with serving(shelf) as found:
        yield found
