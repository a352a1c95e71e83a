"""Removal of secrets from a server's command or URL.

Logs, errors and the terminal show the result.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

from ....traces.secret_table import MASK, SCHEME, is_parameter, is_secret, without_logins
from ...agent.events.masked_arguments import masked

_HARMLESS = frozenset({"accept", "content-type", "user-agent", "accept-language", "cache-control"})
_SHORTEST = 4
"""Shorter texts are not secrets, and replacing them would garble messages."""


def masked_url(url: str) -> str:
    """Return a URL without its login and its query's values."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return without_logins(url.partition("?")[0])
    host = parts.netloc.rpartition("@")[2]
    query = re.sub(r"=[^&]*", f"={MASK}", parts.query)
    return urlunsplit((parts.scheme, host, parts.path, query, ""))


def masked_command(command: str, args: Iterable[Any]) -> str:
    """Return a command without the secrets that names and forms reveal."""
    words = [str(each) for each in args]
    return Hidden({"args": words}).without(" ".join([command, *words]))


class Hidden:
    """The secrets of one connection.

    They are the login and query of its URL, headers, variables and arguments.
    """

    def __init__(self, connection: Mapping[str, Any]) -> None:
        forms = {form for secret in _secrets(connection) for form in (secret, quote(secret), quote_plus(secret))}
        self._texts = sorted((text for text in forms if len(text) >= _SHORTEST), key=len, reverse=True)

    def without(self, text: str) -> str:
        """Return the text without the secrets."""
        for secret in self._texts:
            text = text.replace(secret, MASK)
        return without_logins(text, f"{MASK}@")


def _secrets(connection: Mapping[str, Any]) -> Iterator[str]:
    yield from _secrets_of_url(str(connection.get("url") or ""))
    for name, value in (connection.get("headers") or {}).items():
        if str(name).lower() not in _HARMLESS:
            yield str(value)
            yield from str(value).split()[1:]
    for name, value in (connection.get("env") or {}).items():
        if is_secret(str(name)):
            yield str(value)
    yield from _secrets_of_args([str(each) for each in connection.get("args") or ()])


def _secrets_of_args(args: list[str]) -> Iterator[str]:
    """Yield the secrets among arguments.

    They are values after a flag such as `--token`, values of `TOKEN=...`, credentials in headers, and logins of URLs.
    """
    for arg, masked_arg in zip(args, masked(args), strict=True):
        name, is_pair, value = arg.partition("=")
        if arg != masked_arg or (is_pair and is_secret(name)):
            yield value if is_pair and not arg.startswith("http") else arg
        yield from (match[3] for match in SCHEME.finditer(arg))
        if "://" in arg:
            yield from _secrets_of_url(value if is_pair and "://" not in name else arg)


def _secrets_of_url(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        login = (parts.password or parts.username or "", parts.netloc.rpartition("@")[0])
    except ValueError:
        return
    yield from map(unquote, login)
    yield from (value for name, value in parse_qsl(parts.query) if is_parameter(name) or len(value) >= 2 * _SHORTEST)
