"""The base of every error that refold raises."""


class RefoldError(Exception):
    """Something refold refuses to do or could not do; the message says what, where, and what to do next.

    Subclasses carry the facts as attributes (`path`, `step`, `expected`, …) so that code need not parse the message.
    """
