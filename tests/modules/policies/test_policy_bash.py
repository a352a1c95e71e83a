"""The reader of command lines is held to bash itself: what it calls plain, bash runs in the same words."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from refold.modules.policies.rules.command_line import parse_command_line

MANY = int(os.environ.get("REFOLD_DRAWN", "3000"))
"""How many plain lines are drawn."""
SEED = int(os.environ.get("REFOLD_SEED", "1"))

PIECES = [
    *("ls", "git", "x", "-a", "a", "b", "1", "é", "^", ",", "=", "~", "*", "?", "{a,b}", "{", "}", "(", ")", "[", "]"),
    *(
        " ",
        " ",
        " ",
        " ",
        "\t",
        "\n",
        "\n",
        "\f",
        "\v",
        "\r",
        "\u00a0",
        "\\\n",
        "\\",
        ";",
        ";",
        "&&",
        "||",
        "|",
        "|",
        "&",
    ),
    *("'", "'", '"', '"', "'a b'", '"a b"', "'a\nb'", "$'a'", '$"a"', "''", "!", "$x", "$", "`", "#", " # ", "time "),
    *(">", ">f", ">>f", " 2>&1", " >/dev/null", "&>/dev/null", "2>", "1>f", "<", "<<E", "\nE\n", "then ", "if ", "fi"),
    *("function ", "coproc ", "do ", "case ", "in ", "esac", "[[ ", "]]", "|&", ">&", "2>&1>", "@(a)", "a=b"),
]
REPORT = r"""
say() { printf '%s\0' "$@" $'\1'; }
ls() { say ls "$@" >&9; }; git() { say git "$@" >&9; }; x() { say x "$@" >&9; }
command_not_found_handle() { say "$@" >&9; }
PATH=/nonexistent
while IFS= read -r -d '' line; do eval "$line" <&- 2>&-; printf '\2' >&9; done
"""
"""For each line on stdin, the words of each command, then the end of the line; on descriptor 9."""


def _drawn(rng: random.Random) -> list[str]:
    """Lines that the reader calls plain, and whose programs only report their words."""
    found: list[str] = []
    while len(found) < 500:
        line = rng.choice(["ls", "git", "x"]) + "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 9)))
        commands = parse_command_line(line).commands
        is_pattern = any(word.is_pattern for each in commands for word in each.words)
        if commands and not is_pattern and all("/" not in each.program for each in commands):
            found.append(line)
    return found


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_runs_the_words_that_were_read(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    for _ in range(max(1, MANY // 500)):
        drawn = _drawn(rng)
        said = tmp_path / "said"
        with said.open("wb") as file:
            script = f"exec 9>&{file.fileno()}\n{REPORT}"
            subprocess.run(
                [str(shutil.which("bash")), "-c", script],
                input=b"".join(line.encode() + b"\0" for line in drawn),
                cwd=tmp_path, pass_fds=[file.fileno()], capture_output=True, check=True,
            )  # fmt: skip
        reported = said.read_bytes().split(b"\2")
        assert len(reported) == len(drawn) + 1, drawn[len(reported) - 1]
        for line, ran in zip(drawn, reported, strict=False):
            _compare(line, [tuple(each.decode().split("\0")[:-1]) for each in ran.split(b"\1\0")[:-1]])


def _compare(line: str, ran: list[tuple[str, ...]]) -> None:
    expected = [tuple(word.text for word in command.words) for command in parse_command_line(line).commands]
    for each in ran:  # members of a pipeline run at the same time
        assert each in expected, f"{line!r} was read as {expected}, and bash ran {each}"
        expected.remove(each)
    assert not expected or "&&" in line or "||" in line, f"bash did not run {expected} of {line!r}"
