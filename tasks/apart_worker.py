"""The child process of `apart`: answers with a file's function.

It imports nothing of refold.
"""

import json
import resource
import runpy
import signal
import sys
from typing import BinaryIO


def main(file: str, seconds: int, most: int) -> None:
    """Answer requests until there are no more.

    The kernel ends the process after `seconds`, and refuses memory beyond `most` bytes.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    answer = runpy.run_path(file)["answer"]
    while (request := _frame(sys.stdin.buffer)) is not None:
        body = json.dumps(answer(json.loads(request))).encode()
        sys.stdout.buffer.write(len(body).to_bytes(8, "big") + body)
        sys.stdout.buffer.flush()


def _frame(file: BinaryIO) -> bytes | None:
    size = file.read(8)
    return file.read(int.from_bytes(size, "big")) if len(size) == 8 else None


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
