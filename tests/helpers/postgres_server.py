"""A PostgreSQL server of the tests' own, on a socket in a folder of its own."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from needed import missing, need_package


class PostgresServer:
    """Debian's server as a child of the tests; as root, it runs as the user `postgres`."""

    def __init__(self, *, fsync: bool = False) -> None:
        """Make a cluster in a new folder, and start the server; skip the test if there is none."""
        need_package("psycopg")
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
        if not found:
            missing("there is no PostgreSQL server: apt-get install postgresql")
        self._bin = found[-1].parent
        self._options = [
            "-c",
            f"fsync={'on' if fsync else 'off'}",
            "-c",
            "listen_addresses=",
            "-c",
            "max_connections=40",
        ]
        # Not below tmp_path, which other users cannot enter.
        self._home = Path(tempfile.mkdtemp(prefix="refold-pg-"))
        self._user: dict[str, Any] = {"cwd": "/"}
        if os.getuid() == 0:
            shutil.chown(self._home, "postgres")
            self._user |= {"user": "postgres", "group": "postgres", "extra_groups": []}
        subprocess.run(
            [
                self._bin / "initdb",
                "-D",
                self._home / "d",
                "-N",
                "-A",
                "trust",
                "-U",
                "refold",
                "--no-locale",
                "-E",
                "UTF8",
            ],
            check=True,
            capture_output=True,
            **self._user,
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._home, ignore_errors=True)

    def url(self, schema: str) -> str:
        """Return the URL of a store in a schema."""
        return f"postgresql:///postgres?host={self._home}&user=refold&schema={schema}"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        import psycopg

        with open(self._home / "log", "ab") as log:
            command = [str(self._bin / "postgres"), "-D", f"{self._home}/d", "-k", str(self._home), *self._options]
            process: subprocess.Popen[bytes] = subprocess.Popen(command, stderr=log, stdout=log, **self._user)
        self._process = process
        end = time.monotonic() + 250
        while True:
            try:
                psycopg.connect(f"host={self._home} user=refold dbname=postgres").close()
                return
            except psycopg.OperationalError as error:
                if process.poll() is not None or time.monotonic() > end:
                    told = (self._home / "log").read_text()[-2_000:]
                    raise AssertionError(f"the server does not answer:\n{told}") from error
                time.sleep(0.05)

    def stop(self, how: signal.Signals) -> None:
        """Stop the server by a signal, and wait until all its processes are gone.

        SIGINT is a fast stop, SIGQUIT an immediate one, and SIGKILL hits all processes at once, as a crash would.
        """
        process = self._process
        if process is None or process.poll() is not None:
            return
        if how == signal.SIGKILL:
            _kill_all(process)
        else:
            process.send_signal(how)
            process.wait()
        self._process = None


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill a server with its children, and wait until none is left: one that still holds memory keeps the next away."""
    import psutil

    process.send_signal(signal.SIGSTOP)  # so that it starts no further child
    server = psutil.Process(process.pid)
    while server.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
        time.sleep(0.001)
    children = server.children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):  # a connection that has just been closed
            child.kill()
    process.kill()
    process.wait()
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.001)
