"""Makes a capability's policies known by their names."""

import logging
from collections.abc import Iterable
from importlib import import_module
from typing import Any

log = logging.getLogger("refold")


def register_policies(capability: str, policies: Iterable[type[Any]]) -> None:
    """Registers policies, unless their names are taken; the log tells of those that are."""
    for policy in policies:
        known: Any = import_module("..policies", __package__)
        known.register_policy(policy)
        if known.get_policy_class(policy.name) is not policy:
            log.warning("capability %r: its policy %r is not used, as there is another one", capability, policy.name)
