"""litellm, loaded on its first use: it takes seconds and 200 MB, and would ask the network for prices."""

import os
import warnings
from importlib import import_module, metadata
from typing import Any

from .errors import FatalGeneratorError

_NOISE = r"Item '.*' on TypedDict class '.*' is using the `ReadOnly` qualifier"


def load_litellm() -> Any:
    """The package, with its own list of prices and without what it prints on stdout. Blocks for seconds, once.

    Raises FatalGeneratorError where it is not installed.
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


def litellm_version() -> str:
    """The version that is installed; "" where none is."""
    try:
        return metadata.version("litellm")
    except metadata.PackageNotFoundError:
        return ""
