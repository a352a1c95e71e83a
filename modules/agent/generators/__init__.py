"""Generators: HTTP and litellm for models; scripts, functions and cassettes for tests."""

from .cassettes.cassette import CassetteGenerator
from .errors import ContextOverflowError, FatalGeneratorError, GeneratorError, RateLimitedError, TransientGeneratorError
from .function import FunctionGenerator
from .generation import Generation
from .http.http_generator import HTTPGenerator
from .identifiers import get_generator
from .params import GenerateParams
from .protocol import Generator
from .providers.backoff import Backoff
from .providers.exact_tokens import ExactTokens
from .providers.fallback import Fallback
from .providers.litellm_generator import LiteLLMGenerator
from .scripted import ScriptedGenerator

__all__ = [
    "Backoff",
    "CassetteGenerator",
    "ContextOverflowError",
    "ExactTokens",
    "Fallback",
    "FatalGeneratorError",
    "FunctionGenerator",
    "GenerateParams",
    "Generation",
    "Generator",
    "GeneratorError",
    "HTTPGenerator",
    "LiteLLMGenerator",
    "RateLimitedError",
    "ScriptedGenerator",
    "TransientGeneratorError",
    "get_generator",
]
