"""The folder for values that are too long for a conversation."""

from pathlib import Path

_DEFAULT = "~/.refold"
_chosen: Path | None = None


def configure(*, cache: Path | str | None = None) -> None:
    """Set the cache folder for this process; None restores `~/.refold`.

    The folder is made when the first file is written.
    """
    global _chosen
    _chosen = None if cache is None else Path(cache).expanduser().absolute()


def cache_folder() -> Path:
    """Return the absolute path set by `configure`; otherwise `~/.refold`."""
    return _chosen if _chosen is not None else Path(_DEFAULT).expanduser().absolute()
