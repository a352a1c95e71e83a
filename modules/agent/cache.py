"""The folder in which an Agent keeps what is too long for a conversation."""

from pathlib import Path

_DEFAULT = "~/.refold"
_chosen: Path | None = None


def configure(*, cache: Path | str | None = None) -> None:
    """Sets where files are kept, for this whole process; None sets it back to `~/.refold`.

    The folder is made when the first file is written.
    """
    global _chosen
    _chosen = None if cache is None else Path(cache).expanduser().absolute()


def cache_folder() -> Path:
    """Where files are kept: as `configure` says, else `~/.refold`. An absolute path."""
    return _chosen if _chosen is not None else Path(_DEFAULT).expanduser().absolute()
