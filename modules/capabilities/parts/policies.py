"""Registers a capability's policies by their names."""

import logging
from collections.abc import Iterable

from ...policies import SessionPolicy, get_policy_class, register_policy

log = logging.getLogger("refold")
_from: dict[type[SessionPolicy], str] = {}
"""The capability of each policy registered here.

Loading a capability again replaces its own policies.
"""


def register_policies(capability: str, policies: Iterable[type[SessionPolicy]]) -> None:
    """Register policies, unless others have their names.

    The log reports policies that are not registered.
    """
    for policy in policies:
        known = get_policy_class(policy.name)
        if known is None or _from.get(known) == capability:
            register_policy(policy, replace=True)
            _from[policy] = capability
        else:
            owner = f"{known.__module__}.{known.__qualname__}"
            log.warning("capability %r: its policy %r is not used, as %s has the name", capability, policy.name, owner)
