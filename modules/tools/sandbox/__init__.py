"""Sandboxes: where a model's commands run, what they reach, and their limits."""

from .bubblewrap import BubblewrapSandbox
from .checking import check_sandbox
from .choosing import (
    EnvironmentSandbox,
    SandboxProvider,
    current_sandbox,
    make_sandbox,
    register_sandbox,
    sandbox_names,
    use_sandbox,
)
from .docker import DockerSandbox
from .limits import Finished, Limits, Wall
from .local import LocalSandbox
from .protocol import Sandbox
from .unavailable import SandboxUnavailableError

__all__ = [
    "BubblewrapSandbox",
    "DockerSandbox",
    "EnvironmentSandbox",
    "Finished",
    "Limits",
    "LocalSandbox",
    "Sandbox",
    "SandboxProvider",
    "SandboxUnavailableError",
    "Wall",
    "check_sandbox",
    "current_sandbox",
    "make_sandbox",
    "register_sandbox",
    "sandbox_names",
    "use_sandbox",
]
