"""The hook by which a project's conftest.py has a say in how its traces are tested."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..engine import AgentModule
    from ..traces import Trace


@pytest.hookspec(firstresult=True)
def pytest_refold_module(named: str, trace: "Trace") -> "AgentModule[Any] | None":
    """The module to verify `trace` with; None for the one at the import path `named`, made without arguments.

    For modules that need arguments, or that have moved since the trace was written.
    """
