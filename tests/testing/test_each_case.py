"""Tables of cases in one test: every case is tried, and each that fails is named."""

import pytest
from each_case import each_case


def law(n: int, word: str) -> None:
    assert n % 2, word
    if n == 3:
        with pytest.raises(KeyError):
            pass
    1 // (n - 5)


def test_every_case_that_fails_is_named_with_its_error() -> None:
    cases = [(1, "one"), (2, "two"), (3, "three"), (4, "four"), (5, "five"), (7, "seven")]
    named = ["2, 'two'", "3, 'three'", "4, 'four'", "5, 'five'"]
    with pytest.raises(BaseExceptionGroup, match="\n".join(["4 of 6 cases fail:", *named])) as raised:
        each_case(law, cases)
    told = [(type(error), error.__notes__[-1]) for error in raised.value.exceptions]
    assert told == [
        (AssertionError, "the case: 2, 'two'"),
        (pytest.fail.Exception, "the case: 3, 'three'"),
        (AssertionError, "the case: 4, 'four'"),
        (ZeroDivisionError, "the case: 5, 'five'"),
    ]


def test_a_table_that_holds_passes_and_an_empty_one_does_not() -> None:
    each_case(law, iter([(1, "one")]))
    with pytest.raises(AssertionError, match="there is no case"):
        each_case(law, [])
