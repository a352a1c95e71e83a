"""The statistics equal scipy's and statsmodels' on a thousand drawn cases, and say what they cannot compute."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from drawn_cases import CASES, RESAMPLES, TABLE, Case, case

from refold.errors import UsageError
from refold.modules.evaluation.statistics.agreement import cohens_kappa
from refold.modules.evaluation.statistics.comparison import holm, mcnemar_exact, paired_permutation
from refold.modules.evaluation.statistics.intervals import Interval, bootstrap_interval, mean_of, wilson
from refold.modules.evaluation.statistics.repeats import mean_pass_at_k, mean_pass_hat_k, pass_at_k, pass_hat_k

OURS: dict[str, Callable[[Case], Any]] = {
    "wilson": lambda c: wilson(c.successes[0], c.trials[0], c.level),
    "bootstrap": lambda c: bootstrap_interval(c.values[0], c.level, resamples=RESAMPLES, seed=c.number),
    "mcnemar": lambda c: mcnemar_exact(*c.only),
    "permutation": lambda c: paired_permutation(*c.values),
    "holm": lambda c: holm(c.p_values),
    "kappa": lambda c: cohens_kappa(*c.labels),
    "linear": lambda c: cohens_kappa(*c.labels, weights="linear"),
    "quadratic": lambda c: cohens_kappa(*c.labels, weights="quadratic"),
    "pass_at_k": lambda c: pass_at_k(*c.runs),
    "pass_hat_k": lambda c: pass_hat_k(*c.runs),
}


@pytest.fixture(scope="module")
def golden() -> list[dict[str, Any]]:
    return [json.loads(line) for line in TABLE.read_text().splitlines()[1:]]


@pytest.mark.parametrize("name", OURS)
def test_a_statistic_equals_scipys_or_statsmodels_on_a_thousand_cases(name: str, golden: list[dict[str, Any]]) -> None:
    compared = 0
    for number in range(CASES):
        theirs = golden[number][name]
        if theirs is None or (isinstance(theirs, list) and None in theirs):
            continue  # they found no value: the tests below say what we do
        ours = OURS[name](case(number))
        listed = (list(ours), theirs) if isinstance(theirs, list) else ([ours], [theirs])
        assert listed[0] == pytest.approx(listed[1], rel=0, abs=1e-9), f"case {number}"
        compared += 1
    assert compared > 0.7 * CASES


def test_what_they_cannot_compute_has_a_value_or_an_error() -> None:
    assert wilson(0, 0) == Interval(0.0, 1.0)
    assert mcnemar_exact(0, 0) == 1.0
    assert paired_permutation([1, 1], [1, 1]) == 1.0
    assert holm([]) == []
    assert math.isnan(cohens_kappa(["a", "a"], ["a", "a"]))
    assert pass_at_k(2, 1, 3) is None
    assert pass_hat_k(2, 1, 3) is None
    assert mean_pass_at_k([(3, 1), (1, 1)], 2) is None
    assert mean_pass_hat_k([(2, 2), (2, 0)], 2) == 0.5
    for wrong in (
        lambda: bootstrap_interval([1.0]),
        lambda: bootstrap_interval([0.5, 0.5, 0.5]),
        lambda: wilson(3, 2),
        lambda: wilson(1, 2, 95),
        lambda: holm([1.5]),
        lambda: cohens_kappa([1], [1, 2]),
        lambda: paired_permutation([1], [1, 2]),
        lambda: pass_at_k(2, 3, 1),
    ):
        with pytest.raises(UsageError):
            wrong()


@pytest.mark.parametrize("power", [-1020, -201, 300])
def test_small_and_large_numbers_have_the_statistics_of_ordinary_ones(power: int) -> None:
    """Squares and cubes of them are no floats."""
    one, other = [0.0, 1.0, 2.0, 3.0, 3.0, 7.0], [1.0, 3.0, 2.0, 3.5, 4.0, 7.5]
    large, largest = [[math.ldexp(each, power) for each in values] for values in (one, other)]
    assert mean_of(large) == math.ldexp(mean_of(one), power)
    expected = [math.ldexp(end, power) for end in bootstrap_interval(one)]
    assert bootstrap_interval(large) == pytest.approx(expected, rel=1e-12)
    assert paired_permutation(large, largest) == paired_permutation(one, other)


def test_drawn_signs_agree_with_all_signs() -> None:
    first = [float(i % 3 == 0) for i in range(60)]
    second = [float(i % 2 == 0) for i in range(60)]
    exact = mcnemar_exact(
        sum(a > b for a, b in zip(first, second, strict=True)), sum(a < b for a, b in zip(first, second, strict=True))
    )
    assert paired_permutation(first, second) == pytest.approx(exact, abs=0.02)
