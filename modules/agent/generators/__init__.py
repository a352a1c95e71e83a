"""Generators: litellm for real models; scripts, functions and cassettes for tests."""

from .answers import Answer
from .cassettes.cassette import CassetteGenerator
from .errors import (
    CassetteMissError,
    ContextOverflowError,
    FatalGeneratorError,
    GeneratorError,
    RateLimitedError,
    ScriptExhaustedError,
    TransientGeneratorError,
    UnreachableError,
)
from .estimate import estimate_tokens
from .function import FunctionGenerator
from .generation import CallDelta, Delta, Generation
from .identifiers import GeneratorNameError, get_generator, get_identifier, register_generator
from .journaled import generate, generation_effect
from .params import GenerateParams
from .protocol import BoundedGenerator, Capabilities, DescribedGenerator, Generator, StreamingGenerator
from .providers.backoff import Backoff, Retry, with_backoff
from .providers.litellm_generator import LiteLLMGenerator
from .request_context import generation_number, listening
from .scripted import ScriptedGenerator

__all__ = [
    "Answer",
    "Backoff",
    "BoundedGenerator",
    "CallDelta",
    "Capabilities",
    "CassetteGenerator",
    "CassetteMissError",
    "ContextOverflowError",
    "Delta",
    "DescribedGenerator",
    "FatalGeneratorError",
    "FunctionGenerator",
    "GenerateParams",
    "Generation",
    "Generator",
    "GeneratorError",
    "GeneratorNameError",
    "LiteLLMGenerator",
    "RateLimitedError",
    "Retry",
    "ScriptExhaustedError",
    "ScriptedGenerator",
    "StreamingGenerator",
    "TransientGeneratorError",
    "UnreachableError",
    "estimate_tokens",
    "generate",
    "generation_effect",
    "generation_number",
    "get_generator",
    "get_identifier",
    "listening",
    "register_generator",
    "with_backoff",
]
