"""The Agent's warning about allowed but probably unintended use."""


class AgentWarning(UserWarning):
    """A warning of unsafe or unintended use, which is never raised."""
