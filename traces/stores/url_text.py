"""URLs of stores as they may be shown."""

import re


def without_password(url: str) -> str:
    """Return a URL without its secrets, so that it may be shown.

    The password is left out, and the values of parameters that look secret.
    """
    shown = re.sub(r"(://[^/@:]*):[^@/]*@", r"\1:***@", url)
    return re.sub(r"(?i)([?&](?:[a-z_]*(?:password|secret|token|key)[a-z_]*)=)[^&#]*", r"\1***", shown)
