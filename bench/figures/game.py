"""The Game of 24 by best-first search: hands answered correctly."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations
from time import perf_counter

from refold import Engine, Task
from refold.modules.examples.game_of_24 import makes_24
from refold.modules.examples.game_of_24_search import BEST_FIRST, NO_SOLUTION, GameOf24Search
from refold.tasks import RunView

from ..figure import Figure, Sizes

HANDS = list(combinations_with_replacement(range(1, 14), 4))
"""The 1,820 hands of four numbers from 1 to 13, of which 1,362 can be solved."""


def game(sizes: Sizes) -> Iterator[Figure]:
    """Yield the share of hands with the same answer as brute force."""
    engine = Engine(GameOf24Search(), branch=BEST_FIRST)
    hands = HANDS[:: sizes.hands]
    right = solved = most = 0
    began = perf_counter()
    for hand in hands:
        objective = " ".join(map(str, hand))
        result = engine.run(objective)
        view = RunView(Task(objective=objective), str(result.status), str(result.stop_reason), result.final_result)
        found = makes_24(objective, view).passed is True
        solved += found
        right += found if can_make_24([Fraction(n) for n in hand]) else result.final_result == NO_SOLUTION
        most = max(most, sum(r.kind == "branch" and "opened" in r for r in result.trace.records))
    details = {
        "hands": len(hands),
        "solved": solved,
        "expansions": most,
        "allowed": BEST_FIRST.max_expansions,
        "ms": round((perf_counter() - began) / len(hands) * 1e3, 1),
    }
    title = f"Game of 24: hands of {len(hands):,} answered correctly, within {BEST_FIRST.max_expansions} expansions"
    yield Figure("game", title, 100 * right / len(hands), 100.0, "above", "%", details)


def can_make_24(numbers: Sequence[Fraction]) -> bool:
    """Return whether the numbers make 24, by brute force."""
    if len(numbers) == 1:
        return numbers[0] == 24
    for i, j in permutations(range(len(numbers)), 2):
        a, b = numbers[i], numbers[j]
        rest = [n for k, n in enumerate(numbers) if k not in (i, j)]
        made = [a + b, a - b, a * b] + ([a / b] if b else [])
        if any(can_make_24([*rest, value]) for value in made):
            return True
    return False
