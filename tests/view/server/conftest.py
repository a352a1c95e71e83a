"""Runs of every kind, made once, and a server that shows them."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_traces import record_all
from made_once import made_once
from view_server import Asking, serving

from refold.view import app
from refold.view.pages.folder import compare


@pytest.fixture(autouse=True)
def answers_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server leaves no part of an answer to a later question, however slow the machine is."""
    monkeypatch.setattr(app, "_PART", 250.0)
    monkeypatch.setattr(compare, "_SECONDS", 250.0)


def _recorded(folder: Path) -> dict[str, str]:
    return {name: str(path) for name, path in record_all(folder).items()}


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Traces of every kind, each in a folder of its own."""
    before = list(sys.path)
    try:
        _, found = made_once(
            tmp_path_factory,
            "view-recorded",
            lambda folder: {name: str(path) for name, path in record_all(folder).items()},
        )
    finally:
        sys.path[:] = before
    return {name: Path(path) for name, path in found.items()}


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
