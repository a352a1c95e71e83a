"""The hook by which a project's conftest.py has a say in how its traces are tested."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..engine import AgentModule, MakesModule
    from ..traces import Trace


@pytest.hookspec(firstresult=True)
def pytest_refold_module(named: str, trace: "Trace") -> "AgentModule[Any] | MakesModule | None":
    """The module or Agent to verify `trace` with; None for the module at the import path `named`.

    That one is made without arguments. For Agents, for modules that need arguments, or that have moved since the trace
    was written.
    """
