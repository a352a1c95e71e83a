"""Capabilities: folders that equip an agent.

A capability has a manifest, and may have tools, hooks, policies, skills, agents and MCP servers.
"""

from .capability import Capability
from .errors import CapabilityError
from .health import ComponentHealth
from .loader import load_capability
from .manifest import Manifest, read_manifest
from .parts.agents import CapabilityAgent, load_agent
from .parts.offered_tools import tools_of_module
from .search_path import capability_dirs, discover_capabilities, find_capability

__all__ = [
    "Capability",
    "CapabilityAgent",
    "CapabilityError",
    "ComponentHealth",
    "Manifest",
    "capability_dirs",
    "discover_capabilities",
    "find_capability",
    "load_agent",
    "load_capability",
    "read_manifest",
    "tools_of_module",
]
