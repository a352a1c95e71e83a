"""The process that holds a run, as one line of text.

Other processes can tell from the text whether that process is still alive.
"""

import os
import socket
from functools import cache
from pathlib import Path
from secrets import token_hex

import psutil

SECONDS = 30.0
"""How long a writer holds its run after its last sign of life. A dead writer of the same machine is found at once."""
BEAT_SECONDS = 10.0
"""How often a process extends the leases of its open writers: two signs of life may be lost."""


def new_owner() -> str:
    """Return a text that names this process and one writer.

    A part of the text is random, so that no other writer has the same text.
    """
    pid = os.getpid()
    return f"pid {pid} on {socket.gethostname()} [{_machine()} {_started(pid)} {token_hex(4)}]"


def person_text(owner: str | None) -> str | None:
    """Return the part of an owner's text that people read."""
    return owner.partition(" [")[0] if owner else None


def has_died(owner: str) -> bool:
    """Return whether the process is known to be gone.

    That is known only of processes of this machine.
    """
    shown, _, rest = owner.partition(" [")
    facts = rest.rstrip("]").split(" ")
    words = shown.split(" ")
    if len(facts) != 3 or facts[0] != _machine() or words[0] != "pid" or not words[1].isdecimal():
        return False
    return _started(int(words[1])) != facts[1]


@cache
def _machine() -> str:
    """Return the identity of this boot and process namespace.

    Only the ids of processes with the same identity can be compared.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
        return f"{boot}-{os.readlink('/proc/self/ns/pid').strip('pid:[]')}"
    except OSError:
        return f"{socket.gethostname()}-{int(psutil.boot_time())}"


def _started(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:  # dead, but its parent has not asked yet
            return "gone"
        if (facts := Path(f"/proc/{pid}/stat")).exists():  # in ticks since the boot: the clock may be set
            return facts.read_text().rpartition(")")[2].split()[19]
        return f"{process.create_time():.0f}"
    except (OSError, IndexError):
        return "gone"
    except psutil.Error:
        return "gone"
