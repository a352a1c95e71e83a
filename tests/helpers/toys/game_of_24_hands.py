"""All hands of the Game of 24, and which of them can be solved: by brute force, written apart from the modules."""

import os
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

HANDS = list(combinations_with_replacement(range(1, 14), 4))
"""The 1,820 hands of four numbers from 1 to 13."""
SOLVABLE = 1362
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


def can_make_24(numbers: Sequence[Fraction]) -> bool:
    """Every pair, every operation, negative numbers and all."""
    if len(numbers) == 1:
        return numbers[0] == 24
    for i, j in permutations(range(len(numbers)), 2):
        a, b = numbers[i], numbers[j]
        rest = [n for k, n in enumerate(numbers) if k not in (i, j)]
        made = [a + b, a - b, a * b] + ([a / b] if b else [])
        if any(can_make_24([*rest, value]) for value in made):
            return True
    return False


def fractions(hand: Sequence[int]) -> list[Fraction]:
    return [Fraction(n) for n in hand]
