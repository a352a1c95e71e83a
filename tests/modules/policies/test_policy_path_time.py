"""Patterns of paths mean what they say, and no path takes for ever to be held against one."""

import random
import re

import pytest

from refold.modules.policies.rules.path_pattern import PathPattern, _expression


def naive(pattern: str) -> re.Pattern[str]:
    """What a pattern means, as an expression that may take for ever."""
    fixed = {"/**/": "/(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(/\*\*/|/\*\*$|\*\*|\*|\?)", pattern)
    return re.compile("".join(fixed.get(each) or re.escape(each) for each in pieces), re.DOTALL)


def test_patterns_mean_what_they_say() -> None:
    draw = random.Random(3)
    fitting = 0
    for _ in range(2000):
        pattern = "".join(
            draw.choice(["a", "b", "/", "*", "**", "?", "/**/", "/**"]) for _ in range(draw.randint(1, 8))
        )
        wanted, expected = _expression(pattern), naive(pattern)
        for _ in range(15):
            path = "".join(draw.choice("aab/") for _ in range(draw.randint(0, 9)))
            fits = expected.fullmatch(path) is not None
            fitting += fits
            assert (wanted.fullmatch(path) is not None) == fits, (pattern, path)
    assert fitting > 333


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("**/*a*a*a*a*b", "a" * 4000),
        ("**/a/**/a/**/a/**/a/**/b", "a/" * 2000),
        ("*secret*key*token*x", "secretkeytoken" * 290),
        ("**a**a**a**a**b", "a" * 4000),
        ("?*?*?*?*?*?*b", "a" * 4000),
    ],
)
def test_no_path_takes_for_ever(pattern: str, path: str) -> None:
    assert not PathPattern(pattern, "/w").may_be(path)
