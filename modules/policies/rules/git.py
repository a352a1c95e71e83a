"""git and tar: their commands, and the options with which they run other programs."""

import re
from collections.abc import Sequence

from . import programs
from .reading import Reading, is_name
from .shell_words import Word

_QUIET_SETTINGS = re.compile(
    r"(user\.(name|email)|color\.\w+|advice\.\w+|core\.quote[pP]ath|init\.defaultBranch)=[^!]*"
)
_STEERING = re.compile(
    r"alias|core|pager|diff|merge|filter|credential|gpg|url|include|ssh|remote|sequence", re.IGNORECASE
)


def git(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """git: its options before the command, the command, and those with which it runs others."""
    command = None
    skip = False
    for place, word in enumerate(args):
        text = word.text
        if skip:
            skip = False
            continue
        if text is None or word.many:
            reading.doubt("which command of git it is, is known when it runs")
            return
        if not text.startswith("-"):
            command, rest = text, args[place + 1 :]
            break
        setting = args[place + 1].text if text == "-c" and place + 1 < len(args) else None
        quiet = setting is not None and _QUIET_SETTINGS.fullmatch(setting)
        if text.startswith(("--config-env", "--exec-path", "-c")) and not quiet:
            reading.doubt(f"git is steered by {text}")
        skip = text in ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source")
    if command is None:
        if is_open:
            reading.doubt("which command of git it is, is known when it runs")
        return
    if command not in programs.GIT_COMMANDS:
        reading.doubt(f"git {command} may be an alias")
    texts = [word.text or "" for word in rest]
    if any("::" in word.prefix for word in rest):
        reading.doubt("git may run a program to reach a repository")
    long = [text for text in texts if text.startswith("-")]
    runs = {
        "rebase": [t for t in long if t.startswith(("-x", "--ex", "-i", "--int", "--edit"))],
        "submodule": [t for t in texts if t == "foreach"],
        "config": [t for t in texts if not t.startswith("-")][1:] and [t for t in texts if _STEERING.match(t)],
        "grep": [t for t in long if t.startswith(("-O", "--open"))],
        "clone": [t for t in long if t.startswith(("-c", "--conf"))],
        "difftool": texts,
        "send-email": texts,
        "lfs": [t for t in texts if t not in ("ls-files", "status", "pull", "fetch", "track", "install")],
    }.get(command, [])
    runs += [t for t in long if t.startswith(("--upload-p", "--receive-p", "--exec", "--ext-d", "--textconv", "-u"))]
    if command in ("add", "push", "commit", "branch", "stash", "status", "fetch", "diff", "log", "show"):
        runs = [t for t in runs if not t.startswith("-u")]
    if runs:
        reading.doubt(f"git {command} may run a program with {runs[0]}")


def tar(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """tar: options that name a program."""
    if is_open:
        reading.doubt(f"what {name} is given is known when it runs")
    for place, word in enumerate(args):
        begins = word.prefix
        long = begins.startswith(("--ch", "--to", "--us", "--rs", "--rm", "--in", "--ne", "--files"))
        cluster = re.match(r"-?[a-zA-Z]*[IFT]", begins) and (place == 0 or begins.startswith("-"))
        if long or (cluster and not begins.startswith("--")) or (word.text is None and not is_name(word)):
            reading.doubt(f"{name} may run a program with {word.raw}")
