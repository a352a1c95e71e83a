"""A large table of cases for one law: one test that tries them all, and reports all that fail together."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each_case(law: Callable[..., None], cases: Iterable[tuple[Any, ...]]) -> None:
    """Call the law with the arguments of each case; raise all failures in one group, each with its case as a note.

    A test of its own costs several times what such a case does: in collection, in each worker, and in reports.
    """
    table = list(cases)
    failures: list[BaseException] = []
    named: list[str] = []  # in the message, too: pytest shows the errors of the first fifteen only
    for case in table:
        try:
            law(*case)
        except (Exception, pytest.fail.Exception) as error:
            named.append(", ".join(map(repr, case)))
            error.add_note(f"the case: {named[-1]}")
            failures.append(error)
    assert table, "there is no case"
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {len(table)} cases fail:\n" + "\n".join(named), failures)
