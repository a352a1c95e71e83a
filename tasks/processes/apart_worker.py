"""The child process of `apart`; it imports nothing of refold."""

import importlib
import json
import os
import resource
import signal
import sys


def main(file: str, seconds: int, most: int) -> None:
    """Answer requests until there are no more.

    The kernel ends the process after `seconds`, and refuses memory beyond `most` bytes.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    folder, name = os.path.split(file)
    sys.path.append(folder)
    answer = importlib.import_module(name.removesuffix(".py")).answer
    while (request := _frame()) is not None:
        body = json.dumps(answer(json.loads(request))).encode()
        sys.stdout.buffer.write(len(body).to_bytes(8, "big") + body)
        sys.stdout.buffer.flush()


def _frame() -> bytes | None:
    size = sys.stdin.buffer.read(8)
    return sys.stdin.buffer.read(int.from_bytes(size, "big")) if len(size) == 8 else None
