"""A folder with agents to run, the command in this process, and as a process of its own, with or without a terminal."""

import codecs
import contextlib
import os
import platform
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from warm_python import warm_python

from refold.cli import cli

AGENT = """
import os, signal, sys, time
from refold import Action, AgentModule, Decision, StateSchema, charge, emit

class CountState(StateSchema):
    n: int = 0
    upto: int = 2
    notes: list[str] = []

def look(x: int) -> dict[str, int]:
    charge(tokens_in=10, tokens_out=5, cost=0.25)
    return {"seen": x}

def refuse() -> None:
    raise ValueError("not [bold]now[/bold] \\x1b[31m\\u202e")

def sleep(seconds: float) -> str:
    print("asleep", flush=True)
    time.sleep(seconds)
    return "awake"

def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

class Counter(AgentModule[CountState]):
    tools = {"look": look, "refuse": refuse, "sleep": sleep, "die": die}
    name = "look"

    def init_state(self, task: str, upto: int = 2):
        return CountState(upto=upto)

    def decide(self, state):
        if state.n >= state.upto:
            return Decision.final(f"counted to {state.n}")
        args = {"look": {"x": state.n}, "sleep": {"seconds": 60.0}}.get(self.name, {})
        return Decision.act(Action(self.name, args), rationale="[red]because[/red]")

    def reduce(self, state, decision, observation):
        if decision.mode == "act":
            state.n += 1
            state.notes.append(" ".join(r.error or str(r.output) for r in observation.results))

class Refused(Counter):
    name = "refuse"

class Sleeper(Counter):
    name = "sleep"

class Dying(Counter):
    name = "die"

class Broken(Counter):
    def decide(self, state):
        raise RuntimeError("the model\\nsaid no")  # the line that fails

class Removing(Counter):
    def decide(self, state):
        import shutil
        shutil.rmtree("runs", ignore_errors=state.n > 0)
        return super().decide(state)

class Chatty(Counter):
    def decide(self, state):
        print("a module prints")
        os.system("echo a child prints")
        return super().decide(state)

class Other:
    pass
"""


@dataclass(frozen=True)
class Ran:
    """What came of a command line."""

    code: int
    out: str
    err: str

    @property
    def doc(self) -> Any:
        """Its stdout as the one JSON value that it is."""
        return orjson.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Command = Callable[..., Any]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder: one with the module `agents`."""
    (tmp_path / "agents.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("REFOLD_YES", "1")  # test_cli_consent is asked
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def refold(lab: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command line in this process."""

    def run(*argv: object) -> Ran:
        capsys.readouterr()
        code = cli([str(arg) for arg in argv])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


@pytest.fixture
def trace(lab: Path, refold: Command) -> Path:
    """The trace of a run of two steps and a final one."""
    return Path(refold("run", "agents:Counter", "count", "--seed", 1, "--json").doc["trace"])


@pytest.fixture
def scripted(lab: Path) -> Callable[..., str]:
    """The identifier of a model that gives these answers."""

    def write(*answers: Any) -> str:
        (lab / "script.json").write_bytes(orjson.dumps(list(answers)))
        return "scripted:script.json"

    return write


def command(*argv: object) -> list[str]:
    """The command line as a process is started with it."""
    return [*warm_python(), "-m", "refold", *(str(arg) for arg in argv)]


@pytest.fixture
def process(lab: Path) -> Command:
    """Runs a command line as a process of its own, to its end."""

    def run(*argv: object, **options: Any) -> Any:
        return subprocess.run(
            command(*argv), capture_output=True, encoding="utf-8", timeout=250, check=False, **options
        )

    return run


@pytest.fixture
def start(lab: Path) -> Iterator[Command]:
    """Starts a command line as a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def run(*argv: object, **options: Any) -> Any:
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command(*argv), stdout=pipe, stderr=pipe, encoding="utf-8", **options))
        return started[-1]

    yield run
    for each in started:
        if each.poll() is None:
            each.kill()
        each.communicate()


WAITS = {"x86_64": ({"7", "23", "270", "271"}, "0"), "aarch64": ({"72", "73"}, "63")}
"""The numbers of Linux's system calls that wait for input: poll, select, pselect6 and ppoll; and read."""


def _processes_at(tty: str) -> list[int]:
    """The processes whose input is a terminal."""
    found = []
    for path in Path("/proc").glob("[0-9]*/fd/0"):
        with contextlib.suppress(OSError):
            if os.readlink(path) == tty:
                found.append(int(path.parts[2]))
    return found


def _reads(pid: int) -> bool:
    """Whether a thread of the process waits for input in a system call."""
    waits, read = WAITS[platform.machine()]
    for path in Path(f"/proc/{pid}/task").glob("*/syscall"):
        with contextlib.suppress(OSError):
            number, *arguments = path.read_text().split()
            if number in waits or (number == read and arguments[0] == "0x0"):
                return True
    return False


class Terminal:
    """A process on a terminal of its own; what it writes is kept in `written`."""

    def __init__(self, *argv: object, columns: int = 100, lines: int = 40) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self._master, self.tty = pty.openpty()
        fcntl.ioctl(self.tty, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.before = termios.tcgetattr(self.tty)
        env = {**os.environ, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            command(*argv), stdin=self.tty, stdout=self.tty, stderr=self.tty, env=env, start_new_session=True
        )
        self.written = ""

    def mode(self) -> list[Any]:
        """How the terminal is set now."""
        import termios

        return termios.tcgetattr(self.tty)

    def type(self, keys: str) -> None:
        self.written = ""
        os.write(self._master, keys.encode())

    def wait_for(self, text: str) -> str:
        """Waits until the text was written since the last keys, escape codes left out; gives all that was."""
        until = time.monotonic() + 250
        while text not in plain(self.written):
            assert time.monotonic() < until, f"{text!r} never came; there is:\n{plain(self.written)}"
            if not self._read() and self.process.poll() is not None and not self._read():
                assert text in plain(self.written), f"ended without {text!r}:\n{plain(self.written)}"
        return plain(self.written)

    def wait_until_it_reads(self) -> None:
        """Wait until a process waits for keys: readline hears no signal that comes between its prompt and that."""
        if sys.platform != "linux" or platform.machine() not in WAITS:
            time.sleep(0.3)
            return
        until = time.monotonic() + 250
        while not any(map(_reads, _processes_at(os.ttyname(self.tty)))):
            assert time.monotonic() < until, f"it does not read; there is:\n{plain(self.written)}"
            self._read()

    def end(self, again: str = "") -> int:
        """Waits for the end of the process; gives its exit code. Every two seconds `again` is typed once more."""
        until = time.monotonic() + 250
        turns = 0
        while self.process.poll() is None:
            assert time.monotonic() < until, f"it goes on; there is:\n{plain(self.written)}"
            if not self._read():
                turns += 1
                if again and turns % 20 == 0:
                    os.write(self._master, again.encode())
        while self._read():
            pass
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self.tty)

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 0.1)[0]:
            return False
        self.written += self._decoder.decode(os.read(self._master, 65536))
        return True


@pytest.fixture
def terminal(lab: Path) -> Iterator[Callable[..., Terminal]]:
    """Starts command lines on terminals."""
    started: list[Terminal] = []

    def start(*argv: object, columns: int = 100, lines: int = 40) -> Terminal:
        started.append(Terminal(*argv, columns=columns, lines=lines))
        return started[-1]

    yield start
    for each in started:
        each.close()


def plain(text: str) -> str:
    """Terminal output without its escape codes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]", "", text).replace("\r\n", "\n")
