"""URLs of stores, without their secrets."""

import re


def without_password(url: str) -> str:
    """Return a URL without its password and parameters that look secret."""
    shown = re.sub(r"(://[^/@:]*):[^@/]*@", r"\1:***@", url)
    return re.sub(r"(?i)([?&](?:[a-z_]*(?:password|secret|token|key)[a-z_]*)=)[^&#]*", r"\1***", shown)
