"""Find the skills in a folder."""

import logging
from pathlib import Path

from .front_matter import SkillFileError
from .skill import SKILL_FILE, Skill
from .skill_file import load_skill

log = logging.getLogger("refold")


def discover_skills(directory: Path | None = None) -> list[Skill]:
    """Return the skills in the folders of `directory`, sorted by folder.

    None means the current folder. A skill that cannot be loaded is ignored with a warning in the log. A folder that
    does not exist has no skills.
    """
    root = Path.cwd() if directory is None else Path(directory)
    try:
        folders = sorted(root.iterdir())
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            log.warning("cannot look for skills in %s: %s", root, error)
        return []
    skills: list[Skill] = []
    for folder in folders:
        try:
            if (folder / SKILL_FILE).is_file():
                skills.append(load_skill(folder / SKILL_FILE))
        except (SkillFileError, OSError) as error:
            log.warning("a skill is ignored: %s", error)
    return skills
