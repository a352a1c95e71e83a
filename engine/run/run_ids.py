"""Names of runs: the task's id and a suffix that sorts by time."""

import os
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id(task_id: str) -> str:
    """`<task id>-<suffix>`: 9 characters of milliseconds since the epoch, then 5 at random, in Crockford's base 32."""
    number = int(time.time() * 1000) << 25 | int.from_bytes(os.urandom(4)) >> 7
    text = ""
    for _ in range(14):
        text = _ALPHABET[number & 31] + text
        number >>= 5
    return f"{task_id}-{text}"
