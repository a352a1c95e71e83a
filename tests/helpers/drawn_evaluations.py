"""Two hundred pairs of evaluations, drawn from their number alone: the golden table holds only what others found."""

from dataclasses import dataclass
from pathlib import Path
from random import Random

CASES = 200
TABLE = Path(__file__).parents[1] / "evaluation" / "statistics" / "golden_evaluations.jsonl"


@dataclass(frozen=True)
class Task:
    """A task's group, the verdicts of its repeats, and their numbers in eighths."""

    id: str
    group: str
    verdicts: list[bool]
    numbers: list[float]


def drawn(number: int) -> tuple[list[Task], list[Task]]:
    """The tasks of two versions: a third has one repeat, a third equal verdicts in all tasks."""
    random = Random(number)
    tasks, kind = 2 + int(random.random() * 11), number % 3
    # means of one, two and four eighths are exact floats, so that the others break no tie of resamples by rounding
    repeats = 1 if kind == 0 else 2 + 2 * int(random.random() * 2)
    chance = random.random()

    def version(shift: float) -> list[Task]:
        found = []
        for i in range(tasks):
            verdicts = [random.random() < min(1.0, chance + shift) for _ in range(repeats)]
            if kind == 2 and number % 2:
                verdicts = [j == 0 for j in range(repeats)]
            numbers = [int(random.random() * 9) / 8 for _ in range(repeats)]
            found.append(Task(f"t{i}", "ab"[i % 2], verdicts, numbers))
        return found

    return version(0.0), version(random.random() / 2)
