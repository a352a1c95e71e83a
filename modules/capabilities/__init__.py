"""Capabilities: a folder with a manifest, and what it gives an agent.

It may have tools, hooks, policies, skills, agents and MCP servers.
"""

from .agents import CapabilityAgent, load_agent
from .capability import Capability
from .errors import CapabilityError
from .health import ComponentHealth
from .loading import load_capability
from .manifest import Manifest, read_manifest
from .offering import tools_of_module
from .searching import capability_dirs, discover_capabilities, find_capability

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
