"""The parts of a home that commands need, without credentials."""

import os
from collections.abc import Mapping
from pathlib import Path

_KNOWN = (
    ".pyenv", ".rustup", ".cargo/bin", ".cargo/registry", ".cargo/git", ".nvm", ".volta", ".asdf", ".rbenv", ".bun",
    ".deno", ".local/bin", ".local/share/uv", ".local/share/pipx", ".local/share/mise", ".local/share/pnpm",
    "go/pkg/mod", "go/bin", ".m2/repository", ".gradle/caches", ".gradle/wrapper", ".sdkman/candidates", "miniconda3",
    "miniforge3", "anaconda3",
)  # fmt: skip
"""Where toolchains install themselves in a home. A folder with credentials of its own is not listed as a whole."""
_PRIVATE = frozenset(
    {
        ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".password-store", ".mozilla", ".refold",
        ".terraform.d", "keyrings",
    }
)  # fmt: skip
_ABOVE_PRIVATE = frozenset({".", ".local", ".local/share", ".cargo", ".m2", ".gradle", ".cache", "Library"})
"""Folders of a home that have credentials somewhere inside."""


def toolchains(home: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the folders of a home to show, with links resolved.

    They are those of `PATH` and the known ones, if they exist.
    """
    named = [os.path.normpath(each) for each in environ.get("PATH", "").split(":") if os.path.isabs(each)]
    folders: dict[str, str] = {}
    for place in [*named, *(f"{home}/{each}" for each in _KNOWN)]:
        if place.startswith(f"{home}/") and os.path.isdir(place) and _is_visible(home, place):
            real = os.path.realpath(place)
            if _is_visible(home, real, elsewhere=True):
                folders[place] = real
    return {place: folders[place] for place in sorted(folders, key=lambda each: Path(each).parts)}


def _is_visible(home: str, place: str, *, elsewhere: bool = False) -> bool:
    below = os.path.relpath(place, home)
    if below == ".." or below.startswith("../"):
        return elsewhere and not f"{home}/".startswith(f"{place}/")
    return below not in _ABOVE_PRIVATE and _PRIVATE.isdisjoint(Path(below).parts)
