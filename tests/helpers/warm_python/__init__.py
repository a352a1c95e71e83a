"""Python processes that need not import refold: each is forked from one that has.

An interpreter that runs the command spends half a second of computing on its imports, and the suite starts hundreds.
`warm_python()` stands in the place of `[sys.executable]` in a command line. It starts a real process (`launcher`) that
hands its streams, folder, environment and words to a process that has all modules in memory (`server`), which forks one
that runs the words. The launcher passes on the signals that it gets, and ends as the forked process does.

Use `sys.executable` where the process itself is what a test is about: what it imports, its descriptors, its parents and
children, how a SIGKILL ends it.
"""

import atexit
import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent
_ADDRESS = "WARM_PYTHON"
"""The variable with the address for processes that a test starts and that ask for warm ones themselves."""
_running: list["subprocess.Popen[bytes]"] = []


def warm_python() -> list[str]:
    """The beginning of a command line that runs what follows as Python would: `-m MODULE`, `-c CODE` or a file."""
    if not hasattr(os, "pidfd_open"):
        return [sys.executable]
    return [sys.executable, "-I", "-S", str(_HERE / "launcher.py"), _server()]


@functools.cache
def _server() -> str:
    """Starts the process that forks, once for each process that asks; the address at which it listens.

    It ends when its standard input does, thus with the process that started it, whatever ends that, and removes its
    folder.
    """
    if given := os.environ.get(_ADDRESS):
        return given
    folder = tempfile.mkdtemp(prefix="warm-")
    address = os.path.join(folder, "s")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(
        [sys.executable, str(_HERE / "server.py"), address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
    )
    assert process.stdin is not None
    assert process.stdout is not None
    _running.append(process)
    os.environ[_ADDRESS] = address
    atexit.register(end_warm_python)
    assert process.stdout.readline() == b"ready\n", "the process that forks did not start"
    return address


def end_warm_python() -> None:
    """End the process that forks; the next one to ask starts another one."""
    _server.cache_clear()
    while _running:
        _running.pop().communicate()
        del os.environ[_ADDRESS]
