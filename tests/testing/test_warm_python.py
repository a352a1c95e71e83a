"""The process that forks others for tests outlives a launcher that was killed, and a launcher a signal that is late."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from places import HELPERS
from warm_python import warm_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs pidfd_open")


def test_a_launcher_that_was_killed_before_it_had_asked_is_no_matter() -> None:
    python = warm_python()
    for sent in (b"", (100).to_bytes(4, "big"), (100).to_bytes(4, "big") + b"half"):
        with socket.socket(socket.AF_UNIX) as killed:
            killed.connect(python[-1])
            killed.sendall(sent)
    done = subprocess.run([*python, "-c", "print('here')"], capture_output=True, text=True, timeout=250, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("here\n", "", 0)


def test_a_signal_for_a_process_that_has_just_ended_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        server.listen()
        launcher = [sys.executable, "-I", "-S", str(HELPERS / "warm_python" / "launcher.py"), "s", "-c", ""]
        with subprocess.Popen(launcher, stderr=subprocess.PIPE, text=True) as process:
            connection, _ = server.accept()
            with connection:
                head, streams, _, _ = socket.recv_fds(connection, 4, 3)
                for stream in streams:
                    os.close(stream)
                with connection.makefile("rb") as asked:
                    asked.read(int.from_bytes(head, "big"))
                connection.shutdown(socket.SHUT_RD)  # it has ended, and this is not told yet
                process.send_signal(signal.SIGUSR1)
                connection.sendall((7).to_bytes(4, "big"))
            _, errors = process.communicate(timeout=250)
    assert (process.returncode, errors) == (7, "")
