"""Instructions files: Markdown for an agent, with or without front matter."""

import logging
from pathlib import Path

from .front_matter import SkillFileError, read_text, split

log = logging.getLogger("refold")
INSTRUCTIONS_FILE = "instructions.md"


def load_instructions(path: Path) -> str:
    """The instructions of a file: what stands after its front matter, or all of it where it has none.

    Raises SkillFileError, a ValueError, for front matter that cannot be read, OSError for such a file.
    """
    path = Path(path)
    return split(read_text(path), path)[1].strip()


def discover_instructions(directory: Path | None = None) -> str | None:
    """The instructions in a folder's instructions.md (the current folder's, if None); None where there are none.

    One that cannot be read counts as none, and the log says why.
    """
    path = (Path.cwd() if directory is None else Path(directory)) / INSTRUCTIONS_FILE
    try:
        return load_instructions(path)
    except FileNotFoundError:
        return None
    except (SkillFileError, OSError) as error:
        log.warning("instructions are left out: %s", error)
        return None
