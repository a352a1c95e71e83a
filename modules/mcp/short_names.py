"""Names cut to a length, made unique by a digest."""

from hashlib import blake2b


def with_digest(name: str, length: int, of: str | None = None) -> str:
    """Return a name's beginning and a digest, within `length` characters.

    The digest is that of the whole name, or of `of` if given.
    """
    digest = blake2b((name if of is None else of).encode(), digest_size=4).hexdigest()
    return f"{name[: length - 9]}_{digest}"
