"""Files that a command line writes and that something then runs.

One part of the line may run a file that another part wrote; some files are run by any program.
"""

import re
from dataclasses import dataclass, field

from ..known.files import OUTPUTS

TRUSTED_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")
TOOL_FOLDERS = re.compile(r"(\./)?(\.?venv|env|node_modules/\.|vendor|\.tox/[\w.-]+)/?(bin|Scripts)/([\w.-]+)")
"""Folders of a project with its installed tools.

A program in such a folder is judged by its name.
"""

RUN_BY_OTHERS = re.compile(
    r"(?:.*/)?(?:\.git|\.husky|\.ssh|\.config|\.cargo|\.docker|\.kube|cron[\w.]*|profile\.d|systemd)/.*|/etc/.*|"
    r"(?:.*/)?hooks/(?:applypatch|commit|fsmonitor|post|pre|push|reference|sendemail|update)[\w-]*|"
    r"(?:/|~|\$HOME|\$\{HOME\})(?:.*/)?s?bin(?:/.*)?|"
    r"(?:.*/)?(?:config|\.(?:bash\w*|profile|zsh\w*|z?login|envrc|npmrc|yarnrc[\w.]*|git(?!ignore$|keep$)\w*|vimrc|exrc|"
    r"netrc|pythonrc|curlrc|wgetrc|inputrc|lesskey|mailrc|screenrc|gdbinit|psqlrc|sqliterc|terraformrc|\w+\.conf))",
    re.DOTALL,
)
"""Files that programs run, or that configure what programs run."""

INSTALLED = re.compile(
    r"(?:.*/)?(?:node_modules|site-packages|dist-packages|\.[\w-]+)/.*|/+(?:usr|lib\w*|s?bin|opt|snap|proc|dev)/.*"
)
"""Folders in which programs are installed.

The effect of a script in such a folder is unknown.
"""

SAFE_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/full", "-"})
_OUTPUTS = re.compile(OUTPUTS, re.ASCII)


@dataclass(slots=True)
class Written:
    """The files that a command line writes, and those that it runs.

    None stands for a file that cannot be determined.
    """

    files: list[str | None] = field(default_factory=list)
    folder: str | None = None
    """A folder to which the line changes; other programs may run files in it."""
    is_elsewhere: bool = False
    """Whether the line changes to a folder with installed programs."""
    _run: list[tuple[str, str]] = field(default_factory=list)

    def run(self, name: str, endings: str = "") -> None:
        """Record that a file or a program is run.

        A program runs files of the project, with these endings or with any.
        """
        self._run.append((name, endings))

    def doubts(self) -> list[str]:
        """Return the doubts about files that are written and then run."""
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
