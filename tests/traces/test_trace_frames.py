"""The user's own frames of a recorded traceback, wherever it was recorded."""

import pytest

from refold.traces.analysis.frames import own_frames

ENGINE = '  File "/home/a/refold/engine/run/runner.py", line 128, in whole\n    ended.append(await work)\n'
INSTALLED = '  File "/usr/lib/python3.12/site-packages/refold/engine/engine.py", line 3, in run\n    work()\n'
EXAMPLE = '  File "/home/a/refold/modules/examples/game_of_24.py", line 90, in decide\n    raise ValueError\n'
LIBRARY = '  File "/home/a/.venv/lib/python3.12/site-packages/httpx/_client.py", line 8, in send\n    raise exc\n'
FROZEN = '  File "<frozen importlib._bootstrap>", line 1, in _call\n'
MINE = '  File "/home/a/refold-runs/shop.py", line 17, in price_of\n    return prices[name]\n           ~~~~~~^^^^^^\n'
WINDOWS = '  File "C:\\work\\shop.py", line 4, in decide\n    price_of()\n'
HEAD = "Traceback (most recent call last):\n"


@pytest.mark.parametrize(
    ("frames", "own"),
    [
        ((ENGINE, MINE), ["price_of"]),
        ((ENGINE, INSTALLED, WINDOWS, MINE, LIBRARY), ["decide", "price_of"]),
        ((ENGINE, EXAMPLE), ["decide"]),
        ((ENGINE, EXAMPLE, MINE), ["price_of"]),
        ((ENGINE, FROZEN, LIBRARY), []),
        ((), []),
    ],
)
def test_frames_outside_of_refold_and_libraries_are_the_users(frames: tuple[str, ...], own: list[str]) -> None:
    found = own_frames(HEAD + "".join(frames) + "KeyError: 'nutmeg'\n")
    assert [frame.name for frame in found] == own
    assert all(frame.text + "\n" in "".join(frames) for frame in found)


def test_of_a_chain_of_errors_the_last_counts() -> None:
    first = f"{HEAD}{WINDOWS}KeyError: 'nutmeg'\n"
    between = "\nThe above exception was the direct cause of the following exception:\n\n"
    (frame,) = own_frames(f"{first}{between}{HEAD}{ENGINE}{MINE}ValueError: no price\n")
    assert (frame.file, frame.line) == ("/home/a/refold-runs/shop.py", 17)
