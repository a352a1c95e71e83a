"""A thousand cases for statistics, drawn from their number alone: the golden table holds only what scipy found."""

from dataclasses import dataclass
from pathlib import Path
from random import Random

CASES = 1_000
RESAMPLES = 60
LEVELS = (0.8, 0.9, 0.95, 0.99)
TABLE = Path(__file__).parents[1] / "evaluation" / "statistics" / "golden.jsonl"


@dataclass(frozen=True)
class Case:
    """The arguments of every statistic, for one number."""

    number: int
    level: float
    trials: tuple[int, int]
    successes: tuple[int, int]
    values: tuple[list[float], list[float]]
    labels: tuple[list[int], list[int]]
    p_values: list[float]
    groups: list[list[float]]
    only: tuple[int, int]
    runs: tuple[int, int, int]


def case(number: int) -> Case:
    random = Random(number)

    def upto(most: int) -> int:
        return int(random.random() * (most + 1))

    scale = 10 ** (1 + upto(3))
    trials = 1 + upto(scale), 1 + upto(scale)
    pairs = 2 + upto(8)
    raters = 2 + upto(30)
    kinds = 1 + upto(3)
    runs = 1 + upto(20)
    return Case(
        number,
        LEVELS[upto(3)],
        trials,
        (upto(trials[0]), upto(trials[1])),
        ([upto(8) / 8 for _ in range(pairs)], [upto(8) / 8 for _ in range(pairs)]),
        ([upto(kinds) for _ in range(raters)], [upto(kinds) for _ in range(raters)]),
        [random.random() ** 3 for _ in range(1 + upto(12))],
        [[random.random() for _ in range(1 + upto(5))] for _ in range(2 + upto(8))],
        (upto(40), upto(40)),
        (runs, upto(runs), 1 + upto(runs - 1)),
    )
