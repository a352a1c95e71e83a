"""The id and the seed of a run.

The seed is that of its random numbers.
"""

import os
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id(task_id: str) -> str:
    """Return a new run id, `<task id>-<suffix>`.

    The suffix has 14 characters in lower-case Crockford base 32.

    The first 9 characters encode the milliseconds since the epoch (45 bits), the last 5 are random (25 bits).
    """
    number = int(time.time() * 1000) << 25 | int.from_bytes(os.urandom(4)) >> 7
    text = ""
    for _ in range(14):
        text = _ALPHABET[number & 31] + text
        number >>= 5
    return f"{task_id}-{text}"


def new_seed() -> int:
    """Return a random seed of 53 bits.

    JSON readers that use floats keep it exactly.
    """
    return int.from_bytes(os.urandom(7)) >> 3
