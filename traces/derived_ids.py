"""How `new_id()` derives ids from a seed and a place.

The engine makes the ids, and a comparison of two runs recognizes them.
"""

import uuid
from hashlib import blake2b

_VERSION_8 = 8 << 76 | 2 << 62
_NOT_VERSION = ~(15 << 76 | 3 << 62)


def derive(prefix: bytes, seed: int, path: str, step: int, phase: str, what: str) -> bytes:
    """Return 16 bytes from the seed, the fork path and the place.

    `prefix` is empty in a hook, and names the call in a call's function.
    """
    return blake2b(prefix + f"{seed}|{path}|{step}|{phase}|{what}".encode(), digest_size=16).digest()


def id_from(derived: bytes) -> str:
    """Return derived bytes as a UUID of version 8 (RFC 9562)."""
    return str(uuid.UUID(int=int.from_bytes(derived) & _NOT_VERSION | _VERSION_8))
