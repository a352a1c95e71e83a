"""Real models of litellm's providers, and local servers by `api_base`."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any

import anyio.to_thread
from pydantic import SecretStr

from .....engine import Usage as EngineUsage
from ...chat.messages import Message
from ...chat.usage import Usage
from ...chat.validation import sanitize_orphan_tool_messages
from ..errors import FatalGeneratorError, GeneratorError, TransientGeneratorError
from ..finish_reasons import finish_of
from ..generation import Delta, Generation
from ..params import GenerateParams
from ..protocol import Capabilities
from .assembler import Assembler
from .litellm_import import litellm_version, load_litellm, openai_client
from .loop_thread import Aside, aside
from .prompt_cache import mark_for_caching
from .provider_errors import provider_error_of
from .wire import Wire, reading

DEFAULT_TIMEOUT = 600.0
"""The default timeout in seconds; litellm's own is 6,000."""

_OWN_SERVERS = ("ollama_chat/", "lm_studio/", "hosted_vllm/", "llamafile/")
"""The prefixes of models on the user's own servers."""

_PASSED = (
    "temperature",
    "max_tokens",
    "top_k",
    "top_p",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "api_base",
    "seed",
    "tool_choice",
    "parallel_tool_calls",
)


class LiteLLMGenerator:
    """Asks a model of litellm, such as `openai/gpt-4o` or `ollama_chat/qwen3`.

    For a local server with an OpenAI-like API (Ollama, llama.cpp, vLLM), pass `openai/NAME` and
    `params=GenerateParams(api_base="http://localhost:8000/v1")`. Without `api_key`, the
    provider's environment variable is used. `price` is US dollars per million tokens in and out; it overrides litellm's
    list. An unknown price is None.

    A local server of this kind needs no `api_key`. litellm is imported before the clock of the first run starts, and
    its own retries are off.
    """

    def __init__(
        self,
        model: str,
        *,
        params: GenerateParams | None = None,
        api_key: str | SecretStr | None = None,
        price: tuple[float, float] | None = None,
    ) -> None:
        self.model = model
        self.params = params or GenerateParams()
        self.price = price
        self._api_key = SecretStr(api_key) if isinstance(api_key, str) else api_key

    def __repr__(self) -> str:
        return f"LiteLLMGenerator({self.model!r})"

    async def generate(self, messages: Sequence[Message], params: GenerateParams) -> Generation:
        """Return the model's whole answer.

        Raises the GeneratorError for the failure.
        """
        return await aside(lambda: self._whole(messages, params))

    async def stream(self, messages: Sequence[Message], params: GenerateParams) -> AsyncIterator[Delta | Generation]:
        """Yield the model's answer in pieces, then whole.

        Raises the GeneratorError for the failure, even if the answer breaks off.
        """
        there: Aside[Delta, Generation] = Aside(lambda put: self._streamed(messages, params, put))
        async with there as running, aclosing(running.pieces()) as pieces:
            async for piece in pieces:
                yield piece
            yield running.result()

    async def capabilities(self) -> Capabilities:
        """Return the capabilities in litellm's own list; makes no request."""
        return await aside(self._described)

    async def at_most(self, tokens_in: int, params: GenerateParams) -> EngineUsage | None:
        """Return the largest usage of a request; makes none.

        The output is limited by `max_tokens`, otherwise by the model. The cost is None if the price is unknown.
        """
        return await aside(lambda: self._bounded(tokens_in, self.params.merge_with(params)))

    def request(self, messages: Sequence[Message], params: GenerateParams) -> dict[str, Any]:
        """Return litellm's arguments: a repaired chat and merged parameters."""
        merged = self.params.merge_with(params)
        chat = [message.to_openai() for message in sanitize_orphan_tool_messages(messages)]
        given = merged.given()
        request: dict[str, Any] = {name: given[name] for name in _PASSED if name in given}
        request |= {
            "model": self.model,
            "messages": mark_for_caching(chat) if merged.cache == "latest" else chat,
            "timeout": merged.timeout or DEFAULT_TIMEOUT,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
        }
        if merged.tools:
            request["tools"] = [tool.to_openai() for tool in merged.tools]
        else:
            request.pop("tool_choice", None)
            request.pop("parallel_tool_calls", None)
        if (key := self._key()) is not None:
            request["api_key"] = key
        extra = given.get("extra", {})
        # `drop_params` drops parameters that litellm believes unsupported, but must keep those that the user named in
        # `extra`.
        return {**request, "allowed_openai_params": list(extra), **extra}

    def _key(self) -> str | None:
        return self._api_key.get_secret_value() if self._api_key is not None else None

    @property
    def _is_own_server(self) -> bool:
        return self.params.api_base is not None or self.model.startswith(_OWN_SERVERS)

    async def warm_up(self) -> None:
        """Import litellm; the first request reports if it is missing."""
        with suppress(FatalGeneratorError):
            await anyio.to_thread.run_sync(load_litellm, abandon_on_cancel=True)

    # in the other thread

    async def _whole(self, messages: Sequence[Message], params: GenerateParams) -> Generation:
        litellm = load_litellm()
        request = self.request(messages, self._cached_where_possible(litellm, params))
        try:
            async with reading(Wire()) as wire:
                response = await litellm.acompletion(**request, **self._client(litellm, request))
            if wire.is_read:
                return self._finished(litellm, wire.answer)
            answer = Assembler()
            answer.add(response.model_dump(exclude_none=True))
            return self._finished(litellm, answer)
        except GeneratorError:
            raise
        except Exception as error:  # noqa: BLE001 - becomes a GeneratorError; its text may contain the key
            raise self._provider_error(error, request) from None

    async def _streamed(
        self, messages: Sequence[Message], params: GenerateParams, put: Callable[[Delta], None]
    ) -> Generation:
        litellm = load_litellm()
        request = self.request(messages, self._cached_where_possible(litellm, params))
        answer = Assembler()
        try:
            async with reading(Wire(put)) as wire:
                client = self._client(litellm, request)
                usage = {"stream_options": {"include_usage": True}}
                stream = await litellm.acompletion(**request, **client, stream=True, **usage)
                async for chunk in stream:
                    if not wire.is_read:
                        for piece in answer.add(chunk.model_dump(exclude_none=True)):
                            put(piece)
            answer = wire.answer if wire.is_read else answer
            is_over = wire.is_over if wire.is_read else getattr(stream, "received_finish_reason", True)
            if answer.has_answer and not is_over:
                raise TransientGeneratorError("the answer broke off before its end", provider_error="CutOff")
            return self._finished(litellm, answer)
        except GeneratorError:
            raise
        except Exception as error:  # noqa: BLE001 - becomes a GeneratorError; its text may contain the key
            raise self._provider_error(error, request) from None

    def _cached_where_possible(self, litellm: Any, params: GenerateParams) -> GenerateParams:
        """Return the parameters without cache marks if the model has no caching.

        A server without caching may refuse the marks. If the generator's own parameters ask for marks, they are always
        sent.
        """
        if params.cache is None or self._listed(litellm).get("supports_prompt_caching"):
            return params
        return params.model_copy(update={"cache": None})

    def _listed(self, litellm: Any) -> Any:
        """Return the model's entry in litellm's list, or an empty dict."""
        listed = litellm.model_cost
        return listed.get(self.model) or listed.get(self.model.partition("/")[2]) or {}

    def _client(self, litellm: Any, request: dict[str, Any]) -> dict[str, Any]:
        """Return the client argument for a provider with OpenAI's API.

        That client reads the answers itself (see `wire`). For other providers the result is empty.
        """
        base = request.get("api_base")
        try:
            provider = litellm.get_llm_provider(self.model, api_base=base)[1]
        except Exception:  # noqa: BLE001 - an unknown provider: the request itself reports it
            return {}
        mode = (litellm.model_cost.get(self.model.partition("/")[2]) or {}).get("mode", "chat")
        if provider != "openai" or mode != "chat":
            return {}
        key = self._key() or litellm.api_key or litellm.openai_key
        if base and not (key or os.environ.get("OPENAI_API_KEY")):
            key = "unused"  # the client makes no request without one, and the user's own server accepts any
        return {"client": openai_client(base or litellm.api_base, key)}

    def _provider_error(self, error: Exception, request: dict[str, Any]) -> GeneratorError:
        return provider_error_of(error, self._key(), request.get("api_base"))

    async def _bounded(self, tokens_in: int, params: GenerateParams) -> EngineUsage | None:
        litellm = load_litellm()
        most = params.extra.get("max_completion_tokens") or params.max_tokens
        most = most or self._listed(litellm).get("max_output_tokens")
        if not most:
            return None
        tokens_out = most * (params.extra.get("n") or 1)
        plain = Usage(input_tokens=tokens_in, output_tokens=tokens_out)
        cached = plain.model_copy(update={"cache_creation_input_tokens": tokens_in})
        costs = [cost for cost in (self._cost(litellm, plain), self._cost(litellm, cached)) if cost is not None]
        return EngineUsage(tokens_in, tokens_out, max(costs, default=None))

    async def _described(self) -> Capabilities:
        facts = self._listed(load_litellm())
        source = f"litellm {litellm_version()}"
        if self._is_own_server and not facts.get("supports_function_calling"):
            return Capabilities(function_calling=True, source="the user's own server, whose models are in no list")
        if not facts:
            return Capabilities(source=source)
        return Capabilities(
            function_calling=bool(facts.get("supports_function_calling")),
            prompt_caching=bool(facts.get("supports_prompt_caching")),
            max_input_tokens=facts.get("max_input_tokens"),
            source=source,
        )

    def _finished(self, litellm: Any, answer: Assembler) -> Generation:
        """Return the generation with its cost.

        Raises a transient error if there is no answer, or if its finish reason is that of a failure.
        """
        if not answer.has_answer:
            raise TransientGeneratorError("the provider's response has no answer in it", provider_error="NoChoices")
        generation = answer.generation()
        reason = generation.stop_reason or ""  # "" as opposed to None: a provider should give a reason
        if finish_of(reason) == "failed":
            raise TransientGeneratorError(
                f"the provider ended the answer with the finish reason {reason!r:.80}", provider_error="FinishReason"
            )
        generation = generation.model_copy(update={"stop_reason": reason})
        usage = generation.usage
        if usage is None:
            return generation
        priced = usage.model_copy(update={"cost_usd": self._cost(litellm, usage)})
        return generation.model_copy(update={"usage": priced})

    def _cost(self, litellm: Any, usage: Usage) -> float | None:
        if self.price is not None:
            return (usage.input_tokens * self.price[0] + usage.output_tokens * self.price[1]) / 1e6
        try:
            costs = litellm.cost_per_token(
                model=self.model,
                prompt_tokens=usage.input_tokens,
                completion_tokens=usage.output_tokens,
                cache_read_input_tokens=usage.cache_read_input_tokens,
                cache_creation_input_tokens=usage.cache_creation_input_tokens,
            )
        except Exception:  # noqa: BLE001 - an unknown model raises one of several classes
            return None
        return float(sum(costs))
