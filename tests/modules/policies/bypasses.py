"""Draws command lines that run a command in a hidden way, from the options of programs that take commands."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_DATA: dict[str, Any] = json.loads(Path(__file__).with_name("bypasses.json").read_text())

LONG: dict[str, list[str]] = _DATA["long"]
"""A line, and those long options whose value it runs, or which lead to code that it runs."""
SHORT: dict[str, tuple[str, str]] = _DATA["short"]
"""A line, letters of options without a value, and the one whose value is run."""
WRAPPERS: list[str] = _DATA["wrappers"]
"""What may stand before a command and runs it."""
CODE: list[tuple[str, str]] = _DATA["code"]
"""A line that runs code, and the code that runs a command."""
VARIABLES: list[str] = _DATA["variables"]
RUNNERS: list[str] = _DATA["runners"]
"""Variables that steer programs, and programs."""
COPIES: list[str] = _DATA["copies"]
"""Lines that make a copy of a program and run that."""


def drawn(rng: random.Random, program: str, rest: str) -> str:
    """A line that runs the program with the rest of its words, in a way that is drawn."""
    makers: list[Callable[[random.Random, str, str], str]] = [_long, _short, _wrapped, _coded, _variable, _copied]
    return rng.choice(makers)(rng, program, rest)


def quoted(text: str) -> str:
    """A text in single quotes, as shells read it."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def shortened(rng: random.Random, option: str) -> str:
    """An option as getopt takes it: any beginning of its name."""
    name, mark, value = option.partition("=")
    short = name[: rng.randint(min(4, len(name)), len(name))]
    return ("--strip-p" if short == "--strip" else short) + mark + value  # `--strip` is an option of its own


def _long(rng: random.Random, program: str, rest: str) -> str:
    line = rng.choice(list(LONG))
    option = shortened(rng, rng.choice(LONG[line]))
    value = quoted(f"{program} {rest}" + rng.choice(["", ";:", " #"]))
    return line.format(f"{option}{rng.choice('= ')}{value}")


def _short(rng: random.Random, program: str, rest: str) -> str:
    line = rng.choice(list(SHORT))
    flags, letter = SHORT[line]
    cluster = "".join(rng.sample(flags, rng.randint(0, min(3, len(flags)))))
    return line.format(
        f"-{cluster}{letter}{rng.choice(('', ' ')) if letter.isalpha() else ''}{quoted(f'{program} {rest}')}"
    )


def _wrapped(rng: random.Random, program: str, rest: str) -> str:
    command = f"{_hidden(rng, program)} {rest}"
    for head in (rng.choice(WRAPPERS) for _ in range(rng.randint(1, 3))):
        if head == "trap":
            command = f"trap {quoted(command)} EXIT"
        elif head.startswith("find"):
            command = f"{head} {command} \\;"
        elif head.endswith((" -c", "-lc", "-ec", "-qc", "eval", "--run")):
            command = f"{head} {quoted(command)}"
        else:
            command = f"{head} {command}"
    return command


def _hidden(rng: random.Random, word: str) -> str:
    """A word with quotes and escapes that mean nothing."""
    place = rng.randint(0, len(word) - 1)
    a, b = word[:place], word[place:]
    return rng.choice([word, f"{a}''{b}", f'{a}""{b}', f"'{a}'{b}", f"{a}\\{b}", f"/usr/bin/{word}", f'"{word}"'])


def _coded(rng: random.Random, program: str, rest: str) -> str:
    line, code = rng.choice(CODE)
    return line.format(quoted(code.format(f"{program} {rest}")))


def _variable(rng: random.Random, program: str, rest: str) -> str:
    name, value, runner = rng.choice(VARIABLES), quoted(f"{program} {rest}"), rng.choice(RUNNERS)
    how = rng.choice(
        ["{set} {run}", "env {set} {run}", "export {set}; {run}", "sudo {set} {run}", "declare -x {set}; {run}"]
    )
    return how.format(set=f"{name}={value}", run=runner)


def _copied(rng: random.Random, program: str, rest: str) -> str:
    return rng.choice(COPIES).format(f"/usr/bin/{program}", rest)


def lines(seed: int, count: int, program: str, rest: str) -> Iterator[str]:
    """As many different lines, by a seed."""
    rng, seen = random.Random(seed), set[str]()
    while len(seen) < count:
        line = drawn(rng, program, rest)
        if line not in seen:
            seen.add(line)
            yield line
