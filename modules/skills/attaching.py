"""Gives an agent the skills of a capability."""

import logging
from pathlib import Path
from typing import Any

from .discovering import discover_skills
from .front_matter import SkillFileError
from .loading import load_skill
from .skill import SKILL_FILE, Skill
from .skill_tool import create_skill_tool

log = logging.getLogger("refold")


def attach_capability_skills(*, agent: Any, capability: Any) -> None:
    """Adds one skill tool to `agent.tools`, for all skills under `capability.skills_paths`; none where there are none.

    Each path is a skill's folder, or one that holds such folders. The skills' namespace is the capability's name.
    """
    skills: list[Skill] = []
    for path in capability.skills_paths:
        skills += _skills_at(Path(path))
    if not skills:
        return
    for skill in skills:
        skill.source, skill.namespace = "python", (capability.name,)
    agent.tools = [*agent.tools, create_skill_tool(skills)]


def _skills_at(path: Path) -> list[Skill]:
    if not (path / SKILL_FILE).is_file():
        return discover_skills(path)
    try:
        return [load_skill(path)]
    except (SkillFileError, OSError) as error:
        log.warning("a skill is left out: %s", error)
        return []
