"""Variables of confined commands: who commits, and quick failure without network."""

import re
import subprocess
from functools import lru_cache
from pathlib import Path

_OFFLINE = {
    "npm_config_fetch_retries": "0",
    "npm_config_audit": "false",
    "npm_config_update_notifier": "false",
    "PIP_RETRIES": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "CARGO_NET_OFFLINE": "true",
    "UV_OFFLINE": "1",
    "GOPROXY": "off",
    "GOTOOLCHAIN": "local",
}
"""Without these, installers try again for up to a minute."""
_FAILED_OFFLINE = re.compile(
    r"name or service not known|name resolution|temporary failure|could not resolve|unable to resolve|getaddrinfo"
    r"|network is unreachable|ENETUNREACH|ENOTFOUND|EAI_AGAIN|EAI_FAIL|no route to host|failed to establish a new"
    r"|offline|network was disabled|network connectivity is disabled|GOPROXY=off|lookup disabled|no address associated"
    r"|from versions: none|failed to lookup address"
    r"|failed to connect|couldn't connect|could not connect|connection refused",
    re.IGNORECASE,
)


def variables_for(root: Path, *, network: bool) -> dict[str, str]:
    """Return the variables that confined commands in a workspace get in addition."""
    return _identity(root) | {"GIT_TERMINAL_PROMPT": "0"} | ({} if network else _OFFLINE)


@lru_cache(maxsize=16)
def _identity(root: Path) -> dict[str, str]:
    """Return the user's name and address as git knows them.

    Commands do not see git's configuration in home.
    """
    variables: dict[str, str] = {}
    for name in ("name", "email"):
        try:
            value = subprocess.run(
                ["git", "config", f"user.{name}"], cwd=root, capture_output=True, text=True, timeout=10, check=False
            ).stdout.strip()
        except (OSError, subprocess.TimeoutExpired):
            value = ""
        if value:
            variables |= {f"GIT_{who}_{name.upper()}": value for who in ("AUTHOR", "COMMITTER")}
    return variables


def hint_for(output: str, *, network: bool) -> str | None:
    """Return what a command's output says about the sandbox, or None.

    `network` says whether the command had one.
    """
    if not network and _FAILED_OFFLINE.search(output):
        return "this command had no network; call again with network=true if it needs one, and say why"
    if "Read-only file system" in output:
        return (
            "files outside of the workspace, and files in it that others run as code, are read-only here; call again "
            "with outside=true if you need to write them (git commit does), and say why"
        )
    if "Permission denied" in output and "/tmp" in output:  # of Landlock, which cannot give a run its own /tmp
        return "write temporary files to $TMPDIR here, and not to /tmp"
    return None
