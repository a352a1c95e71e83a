"""The id of a run, and the seed of its random numbers."""

import os
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id(task_id: str) -> str:
    """Return a new run id, `<task id>-<suffix>`.

    The suffix has 14 characters of lower-case Crockford base 32: the first 9 encode the milliseconds since the epoch
    (45 bits), and the last 5 are random (25 bits).
    """
    number = int(time.time() * 1000) << 25 | int.from_bytes(os.urandom(4)) >> 7
    text = ""
    for _ in range(14):
        text = _ALPHABET[number & 31] + text
        number >>= 5
    return f"{task_id}-{text}"


def new_seed() -> int:
    """Return a random seed of 53 bits, which a float holds exactly."""
    return int.from_bytes(os.urandom(7)) >> 3
