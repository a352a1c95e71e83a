"""The workspace: which folder it is, and the one test of whether a path stays inside it."""

from __future__ import annotations

from errno import ELOOP
from pathlib import Path

from ..errors import OutsideWorkspaceError
from .task import EnvSpec


def workspace_of(spec: EnvSpec | None, workspace: str | Path | None) -> Path:
    """The workspace folder: the `workspace` (or `source`) of the environment's config, relative to `workspace`; else
    `workspace`; else the current directory. Absolute, not resolved, and not checked to exist."""
    base = Path(workspace if workspace is not None else ".").absolute()
    config = spec.config if spec is not None else {}
    own = config.get("workspace", config.get("source"))
    return base / own if isinstance(own, str) else base


def followed(path: Path) -> Path:
    """Give the real path; raises OSError where links go round, which `Path.resolve` does no more since Python 3.13."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == ELOOP:
            raise
    return path.resolve()


def inside(root: Path, relative: str | Path) -> Path:
    """The real path of `relative` below `root`, links and `..` resolved; what is there may not exist yet.

    An absolute path is fine if it leads inside. The test is on the resolved path, component by component, so that
    `/b/ws-secret` is not inside `/b/ws`.

    Raises:
        OutsideWorkspaceError: it leads out of `root`, has a NUL character, or goes round in links.
    """
    text = str(relative)
    if "\0" in text:
        raise OutsideWorkspaceError(text, root, "has a NUL character")
    real_root = root.resolve()
    try:
        real = followed(real_root / relative)
    except (OSError, RuntimeError) as error:
        raise OutsideWorkspaceError(text, root, "can't be followed: its links go round, or it is too long") from error
    if not real.is_relative_to(real_root):
        raise OutsideWorkspaceError(text, root, f"leads out of the workspace, to {real}")
    return real
