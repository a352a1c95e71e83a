"""A suite that leaves something in the temporary directory fails, and the message says which test left it."""

import os
import subprocess
from pathlib import Path

import pytest
from places import HELPERS
from warm_python import warm_python

TESTS = """
import tempfile

def test_tidy():
    with tempfile.TemporaryDirectory(prefix="refold-"):
        pass

def test_untidy():
    LEAVES

def test_last():
    pass
"""


@pytest.mark.parametrize(("leaves", "told"), [('tempfile.mkdtemp(prefix="refold-")', "1 error"), ("pass", "3 passed")])
def test_what_is_left_in_the_temporary_directory_fails_the_suite(tmp_path: Path, leaves: str, told: str) -> None:
    (tmp_path / "conftest.py").write_text("from leftovers import *\n")
    (tmp_path / "test_it.py").write_text(TESTS.replace("LEAVES", leaves))
    (tmp_path / "tmp").mkdir()
    env = {**os.environ, "PYTHONPATH": str(HELPERS), "TMPDIR": str(tmp_path / "tmp")}
    command = [*warm_python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", "."]
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=250, check=False)
    assert told in ended.stdout, ended.stdout
    if leaves != "pass":
        assert "first seen after test_it.py::test_untidy" in ended.stdout
    assert os.listdir(tmp_path / "tmp") in ([], ["pytest-of-root"])
