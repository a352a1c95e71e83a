"""How much a command may take, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Wall = Literal["network", "files", "processes", "tmp"]
"""What a sandbox keeps commands from: the network, files other than the workspace's (they can't be written), processes
outside (they can't be seen), and the /tmp of others."""


@dataclass(frozen=True)
class Limits:
    """What each command may take; None is no limit.

    `seconds` is the longest time, whatever a call asks for. Of its output `output_bytes` are kept, half from its
    beginning and half from its end. The others are the limits of setrlimit(2), for each of its processes; a command
    that has more than `processes` at once is killed besides, as that limit does not hold for root.
    """

    seconds: float | None = None
    output_bytes: int = 1_000_000
    memory_bytes: int | None = None
    file_bytes: int | None = None
    cpu_seconds: int | None = None
    processes: int | None = None

    def wrapped(self, argv: Sequence[str]) -> list[str]:
        """The command, begun by a shell that sets the limits."""
        each = (
            ("ulimit -v {}", self.memory_bytes and self.memory_bytes // 1024),
            ("ulimit -f {}", self.file_bytes and max(1, self.file_bytes // 512)),
            ("ulimit -t {}", self.cpu_seconds),
            ("{{ ulimit -u {0} 2>/dev/null || ulimit -p {0}; }}", self.processes),  # bash's name, and dash's
        )
        sets = [text.format(value) for text, value in each if value]
        return ["/bin/sh", "-c", f'{" && ".join(sets)} && exec "$@"', "sh", *argv] if sets else list(argv)

    def timeout(self, asked: float | None) -> float | None:
        """The time a command gets, when its call asks for `asked` seconds."""
        given = [each for each in (asked, self.seconds) if each is not None]
        return min(given) if given else None


@dataclass(frozen=True)
class Finished:
    """What came of a command."""

    returncode: int
    """0 is success; -n is death by signal n."""
    output: str
    """What it wrote to stdout and stderr, in the order in which it did; a line tells of what was left out."""
    timed_out: bool = False
    """Its time was up, and it was killed with all that it had started."""
    left_out: int = 0
    """How many bytes of output were not kept."""
    left_behind: int = 0
    """How many processes it had left in the background; they were killed when it ended."""

    @property
    def ok(self) -> bool:
        """It ended by itself, and with 0."""
        return self.returncode == 0 and not self.timed_out
