"""The warning of the Agent: what is allowed, and most likely not meant."""


class AgentWarning(UserWarning):
    """An agent is used in a way that may not be safe or intended. It is only ever a warning, never raised."""
