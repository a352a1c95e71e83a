"""Names that are cut to a length and still tell what they were."""

from hashlib import blake2b


def with_digest(name: str, length: int, of: str | None = None) -> str:
    """The beginning of a name, and a digest of all of it (of `of`, if given): at most `length` characters."""
    digest = blake2b((name if of is None else of).encode(), digest_size=4).hexdigest()
    return f"{name[: length - 9]}_{digest}"
