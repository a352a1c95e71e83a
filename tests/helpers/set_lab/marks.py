"""Marks: what the effects of a set have really done, in an append-only file beside the store.

Each execution of an effect writes a line when it begins and one when it has ended, under a name of its own.
"""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Execution:
    """One execution of an effect: the lines of the file where it began and ended."""

    name: str
    began: int
    ended: int | None = None


def mark(path: str, what: str, task: str, step: int, name: str) -> None:
    """Append one line in one write, so that no kill cuts it."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, f"{what} {task} {step} {name}\n".encode())
    finally:
        os.close(file)


def ended(path: Path) -> int:
    """Return how many executions have ended so far."""
    return path.read_bytes().count(b"ended ") if path.exists() else 0


def executions(path: Path) -> dict[tuple[str, int], list[Execution]]:
    """Return the executions of each task's steps, in the order in which they began."""
    found: dict[tuple[str, int], dict[str, Execution]] = {}
    for number, line in enumerate(path.read_text().splitlines()):
        what, task, step, name = line.split(" ")
        of_step = found.setdefault((task, int(step)), {})
        if what == "began":
            of_step[name] = Execution(name, number)
        else:
            of_step[name] = Execution(name, of_step[name].began, number)
    return {key: list(of_step.values()) for key, of_step in found.items()}
