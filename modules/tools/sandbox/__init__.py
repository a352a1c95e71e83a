"""Sandboxes for a model's commands: places, walls (barriers) and limits."""

from .bubblewrap import BubblewrapSandbox
from .docker import DockerSandbox
from .landlock import LandlockSandbox
from .limits import Finished, Limits, Wall
from .local import LocalSandbox
from .protocol import Sandbox
from .registry import (
    EnvironmentSandbox,
    SandboxProvider,
    current_sandbox,
    make_sandbox,
    register_sandbox,
    sandbox_names,
    use_sandbox,
)
from .unavailable import SandboxUnavailableError
from .unconfined import UnconfinedSandbox

__all__ = [
    "BubblewrapSandbox",
    "DockerSandbox",
    "EnvironmentSandbox",
    "Finished",
    "LandlockSandbox",
    "Limits",
    "LocalSandbox",
    "Sandbox",
    "SandboxProvider",
    "SandboxUnavailableError",
    "UnconfinedSandbox",
    "Wall",
    "current_sandbox",
    "make_sandbox",
    "register_sandbox",
    "sandbox_names",
    "use_sandbox",
]
