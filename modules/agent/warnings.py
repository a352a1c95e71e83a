"""The Agent's warning about allowed but probably unintended use."""


class AgentWarning(UserWarning):
    """A use of an agent that may be unsafe or unintended.

    It is only ever a warning, never raised.
    """
