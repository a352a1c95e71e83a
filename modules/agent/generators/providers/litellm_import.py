"""Loading of litellm on first use.

The import takes seconds and 200 MB, and by default fetches prices from the network.
"""

import os
import warnings
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any

from ..errors import FatalGeneratorError
from .wire import client_class

_NOISE = r"Items? '.*' on TypedDict class '.*' (?:is|are) using the `ReadOnly` qualifier"


def load_litellm() -> Any:
    """Return the package, with its bundled prices and its output silenced.

    The first call blocks for seconds. Raises FatalGeneratorError if litellm is not installed.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    warnings.filterwarnings("ignore", _NOISE, UserWarning)
    try:
        litellm: Any = import_module("litellm")
    except ModuleNotFoundError as error:
        if error.name != "litellm":
            raise
        raise FatalGeneratorError(
            "litellm, which asks models, is not installed: pip install 'refold[agent]'", provider_error="ImportError"
        ) from None
    litellm.suppress_debug_info = True
    return litellm


@lru_cache(maxsize=1)
def _http_client() -> Any:
    """Return the HTTP client of all `openai_client`s.

    They share one connection pool, which discards connections that a server has closed.
    """
    import openai

    return client_class(openai.DefaultAsyncHttpxClient)()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_http_client.cache_clear)


def openai_client(api_base: str | None, api_key: str | None) -> Any:
    """Return a client of OpenAI's API whose answers `wire` reads.

    Use the client only in the loop of `aside`. Raises openai's OpenAIError if there is no key.
    """
    import openai

    base = api_base or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE") or None
    return openai.AsyncOpenAI(api_key=api_key, base_url=base, max_retries=0, http_client=_http_client())


def litellm_version() -> str:
    """Return the installed version, or ""."""
    try:
        return metadata.version("litellm")
    except metadata.PackageNotFoundError:
        return ""
