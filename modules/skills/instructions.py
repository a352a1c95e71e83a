"""Instructions files: Markdown for an agent, with or without front matter."""

import logging
from pathlib import Path

from .front_matter import SkillFileError, read_text, split

log = logging.getLogger("refold")
INSTRUCTIONS_FILE = "instructions.md"


def load_instructions(path: Path) -> str:
    """Return the instructions of a file, without its front matter.

    Raises SkillFileError (a ValueError) for invalid front matter, OSError if the file cannot be read.
    """
    path = Path(path)
    return split(read_text(path), path)[1].strip()


def discover_instructions(directory: Path | None = None) -> str | None:
    """Return the instructions in a folder's instructions.md, or None.

    `directory` is the current folder by default. A file that cannot be read is ignored with a warning in the log.
    """
    path = (Path.cwd() if directory is None else Path(directory)) / INSTRUCTIONS_FILE
    try:
        return load_instructions(path)
    except FileNotFoundError:
        return None
    except (SkillFileError, OSError) as error:
        log.warning("instructions are ignored: %s", error)
        return None
