"""Generators: HTTP and litellm for models; scripts, functions and cassettes for tests."""

from .answers import Answer
from .cassettes.cassette import CassetteGenerator
from .errors import ContextOverflowError, FatalGeneratorError, GeneratorError, RateLimitedError, TransientGeneratorError
from .function import FunctionGenerator
from .generation import Delta, Generation
from .http.http_generator import HTTPGenerator
from .identifiers import get_generator
from .journaled import generate
from .params import GenerateParams
from .protocol import BoundedGenerator, Capabilities, Generator
from .providers.backoff import Backoff, PendingRetry
from .providers.litellm_generator import LiteLLMGenerator
from .request_context import listening
from .scripted import ScriptedGenerator

__all__ = [
    "Answer",
    "Backoff",
    "BoundedGenerator",
    "Capabilities",
    "CassetteGenerator",
    "ContextOverflowError",
    "Delta",
    "FatalGeneratorError",
    "FunctionGenerator",
    "GenerateParams",
    "Generation",
    "Generator",
    "GeneratorError",
    "HTTPGenerator",
    "LiteLLMGenerator",
    "PendingRetry",
    "RateLimitedError",
    "ScriptedGenerator",
    "TransientGeneratorError",
    "generate",
    "get_generator",
    "listening",
]
