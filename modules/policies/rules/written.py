"""Files that one part of a command line makes and another runs, and those that any program runs."""

import re
from dataclasses import dataclass, field

from .known.files import OUTPUTS

TRUSTED_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")
TOOL_FOLDERS = re.compile(r"(\./)?(\.?venv|env|node_modules/\.|vendor|\.tox/[\w.-]+)/?(bin|Scripts)/([\w.-]+)")
"""Folders of a project in which its tools are installed; a program there is judged by its name."""

RUN_BY_OTHERS = re.compile(
    r"(?:.*/)?(?:\.git|\.husky|\.ssh|\.config|\.cargo|\.docker|\.kube|cron[\w.]*|profile\.d|systemd)/.*|/etc/.*|"
    r"(?:.*/)?hooks/(?:applypatch|commit|fsmonitor|post|pre|push|reference|sendemail|update)[\w-]*|"
    r"(?:/|~|\$HOME|\$\{HOME\})(?:.*/)?s?bin(?:/.*)?|"
    r"(?:.*/)?(?:config|\.(?:bash\w*|profile|zsh\w*|z?login|envrc|npmrc|yarnrc[\w.]*|git(?!ignore$|keep$)\w*|vimrc|exrc|"
    r"netrc|pythonrc|curlrc|wgetrc|inputrc|lesskey|mailrc|screenrc|gdbinit|psqlrc|sqliterc|terraformrc|\w+\.conf))",
    re.DOTALL,
)
"""Files that programs run, or that tell them what to run."""

INSTALLED = re.compile(
    r"(?:.*/)?(?:node_modules|site-packages|dist-packages|\.[\w-]+)/.*|/+(?:usr|lib\w*|s?bin|opt|snap|proc|dev)/.*"
)
"""Where programs are installed: what a script there does, nobody knows."""

SAFE_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/full", "-"})
_OUTPUTS = re.compile(OUTPUTS, re.ASCII)


@dataclass(slots=True)
class Written:
    """The files that a command line writes, None for one that cannot be told, and those that it runs."""

    files: list[str | None] = field(default_factory=list)
    folder: str | None = None
    """A folder that the line goes to, in which a file may be one that others run."""
    is_elsewhere: bool = False
    """Whether the line goes to a folder in which programs are installed."""
    _run: list[tuple[str, str]] = field(default_factory=list)

    def run(self, name: str, endings: str = "") -> None:
        """Notes that this is run: a file, or a program that runs files of the project, with these endings or any."""
        self._run.append((name, endings))

    def doubts(self) -> list[str]:
        """What may be made by one part of the line and run by another."""
        found = [
            f"it may write what {name} then runs"
            for name, endings in self._run
            if any(_may_be_code(file, name, endings) for file in self.files)
        ]
        if self.folder is not None and any(file is None or "." not in file.rsplit("/", 1)[-1] for file in self.files):
            found.append(f"it may write what programs run, in {self.folder}")
        return found


def _may_be_code(file: str | None, name: str, endings: str) -> bool:
    if file is None:
        return True
    base = file.rstrip("/").rsplit("/", 1)[-1]
    if endings:
        return re.fullmatch(rf".*\.(?:{endings})", base) is not None
    return base == name.rsplit("/", 1)[-1] or not _OUTPUTS.fullmatch(base)
