"""What every test shares: hypothesis profiles, a SIGINT that is heard, and what `make test-fast` passes over."""

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent
SLOW = (
    # whole processes, terminals and signals
    "bench/*",
    "cli/agent/*",
    "cli/runs/*",
    "cli/traces/test_cli_[!t]*",
    "docs/*",
    "typing/*",
    "view/server/test_view_live.py",
    "engine/runs/test_exits.py",
    "engine/branches/test_branch_worlds.py",
    "testing/test_pytest_plugin.py",
    "modules/mcp_client/*",
    "modules/tools/commands/test_tool_commands.py",
    "modules/agent/models/test_agent_litellm.py",
    "modules/examples/*",
    "run_sets/test_set_command.py",
    "run_sets/test_set_ray.py",
    # Chromium
    "view/browser/views/*",
    # SIGKILL at many moments
    "*_kills.py",
    "engine/kills/*",
    # laws and machines with many examples
    "*_laws.py",
    "*_machine.py",
    "engine/runs/test_generated.py",
    "engine/waits/test_wait_answers.py",
    "engine/resume/test_reuse.py",
    "modules/agent/tools/test_mode_round_trip.py",
    "modules/agent/tools/test_reading_linear.py",
    "modules/agent/trajectory/test_agent_converters.py",
    "testing/test_state_strategies.py",
    "testing/test_check_resume.py",
    "stores/test_store_kills.py",
    "traces/test_trace_damage.py",
)
"""Files whose tests are marked `slow`, as globs below this folder; `make test-fast` passes over them."""

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fast", derandomize=True, deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", deadline=None, max_examples=5000, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_finish() -> None:
    """Keeps the thousands of collected tests out of garbage collections, which would look at them again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of slow files."""
    slow: dict[Path, bool] = {}
    for item in items:
        if item.path not in slow:
            slow[item.path] = item.path.is_relative_to(ROOT) and any(
                item.path.match(f"tests/{glob}") or (glob.startswith("*") and item.path.match(glob)) for glob in SLOW
            )
        if slow[item.path]:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """Tests send SIGINT; a shell that starts them in the background (`nohup make test &`) has it ignored, and children
    inherit that."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.SIG_IGN)
