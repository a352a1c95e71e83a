"""Skills: folders with a SKILL.md that teach an agent something.

agentskills.io specifies them.
"""

from .attaching import attach_capability_skills, attach_skills
from .discovering import discover_skills
from .front_matter import SkillFileError
from .instructions import discover_instructions, load_instructions
from .loading import load_skill
from .resolving import UnknownSkillError, resolve_skill
from .skill import Skill, SkillSource
from .skill_tool import create_skill_tool, skills_of

__all__ = [
    "Skill",
    "SkillFileError",
    "SkillSource",
    "UnknownSkillError",
    "attach_capability_skills",
    "attach_skills",
    "create_skill_tool",
    "discover_instructions",
    "discover_skills",
    "load_instructions",
    "load_skill",
    "resolve_skill",
    "skills_of",
]
