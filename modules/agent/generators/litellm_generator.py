"""Real models, of any provider that litellm knows, and local servers by their `api_base`."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from pydantic import SecretStr

from ..chats import sanitize_orphan_tool_messages
from ..messages import Message
from ..usage import Usage
from .aside import Aside, aside
from .caching import mark_for_caching
from .errors import GeneratorError, TransientGeneratorError
from .generation import CallDelta, Delta, Generation
from .litellm_errors import litellm_error
from .litellm_loading import litellm_version, load_litellm
from .params import GenerateParams
from .protocol import Capabilities

DEFAULT_TIMEOUT = 600.0
"""Seconds that a provider may be silent where no timeout is given; litellm's own default is 6,000."""

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
    """Asks the model that litellm knows under `model`, such as `openai/gpt-4o` or `ollama_chat/qwen3`.

    For a local server with an OpenAI-like API (Ollama, llama.cpp, vLLM) give `openai/NAME` and
    `params=GenerateParams(api_base="http://localhost:8000/v1")`; `api_key` may be any text then. Without `api_key` the
    provider's environment variable is used. `price` is US dollars per million tokens in and out, where litellm's list
    has none or another; a price that nobody knows is None.

    litellm is imported at the first request, in a thread of its own, and never asks twice by itself.
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
        """The model's answer, whole. Raises GeneratorError in the class that fits."""
        return await aside(lambda: self._whole(messages, params))

    async def stream(self, messages: Sequence[Message], params: GenerateParams) -> AsyncIterator[Delta | Generation]:
        """The model's answer as it comes. Raises GeneratorError in the class that fits, also when it breaks off."""
        there: Aside[Delta, Generation] = Aside(lambda put: self._streamed(messages, params, put))
        async with there as running, aclosing(running.pieces()) as pieces:
            async for piece in pieces:
                yield piece
            yield running.result()

    async def capabilities(self) -> Capabilities:
        """What litellm's own list says of the model; nothing is asked."""
        return await aside(self._described)

    def request(self, messages: Sequence[Message], params: GenerateParams) -> dict[str, Any]:
        """The arguments of litellm's `acompletion`: a chat that APIs take, and the merged parameters."""
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
        # What litellm thinks that a provider does not take is dropped, but for what was asked for by name.
        return {**request, "allowed_openai_params": list(extra), **extra}

    def _key(self) -> str | None:
        return self._api_key.get_secret_value() if self._api_key is not None else None

    # in the other thread

    async def _whole(self, messages: Sequence[Message], params: GenerateParams) -> Generation:
        litellm = load_litellm()
        try:
            response = await litellm.acompletion(**self.request(messages, params))
            return self._read(litellm, response)
        except GeneratorError:
            raise
        except Exception as error:  # noqa: BLE001 - told in one of our classes; its text may hold the key
            raise litellm_error(error, self._key()) from None

    async def _streamed(
        self, messages: Sequence[Message], params: GenerateParams, put: Callable[[Delta], None]
    ) -> Generation:
        litellm = load_litellm()
        try:
            request = self.request(messages, params)
            stream = await litellm.acompletion(**request, stream=True, stream_options={"include_usage": True})
            chunks: list[Any] = []
            async for chunk in stream:
                _make_writable(chunk)
                chunks.append(chunk)
                for piece in _pieces(chunk):
                    put(piece)
            if not getattr(stream, "received_finish_reason", True):
                raise TransientGeneratorError("the answer broke off: its end never came", provider_error="CutOff")
            return self._read(litellm, litellm.stream_chunk_builder(chunks, messages=request["messages"]))
        except GeneratorError:
            raise
        except Exception as error:  # noqa: BLE001 - told in one of our classes; its text may hold the key
            raise litellm_error(error, self._key()) from None

    async def _described(self) -> Capabilities:
        listed = load_litellm().model_cost
        facts = listed.get(self.model) or listed.get(self.model.partition("/")[2])
        source = f"litellm {litellm_version()}"
        if facts is None:
            return Capabilities(source=source)
        return Capabilities(
            function_calling=bool(facts.get("supports_function_calling")),
            prompt_caching=bool(facts.get("supports_prompt_caching")),
            max_input_tokens=facts.get("max_input_tokens"),
            source=source,
        )

    def _read(self, litellm: Any, response: Any) -> Generation:
        """The generation that a response holds; one without an answer is an error that may pass."""
        if not getattr(response, "choices", None):
            raise TransientGeneratorError("the provider's response has no answer in it", provider_error="NoChoices")
        choice = response.choices[0]
        document = _writable(choice.message.model_dump(exclude_none=True))
        usage = Usage.from_openai(getattr(response, "usage", None))
        if usage is not None and not usage.total_tokens:
            usage = None
        if usage is not None:
            usage = usage.model_copy(update={"cost_usd": self._cost(litellm, response, usage)})
        extra = {"response_id": response.id} if getattr(response, "id", None) else {}
        return Generation(
            message=Message.from_openai({**document, "role": "assistant"}),
            stop_reason=choice.finish_reason,
            usage=usage,
            extra=extra,
        )

    def _cost(self, litellm: Any, response: Any, usage: Usage) -> float | None:
        if self.price is not None:
            return (usage.input_tokens * self.price[0] + usage.output_tokens * self.price[1]) / 1e6
        try:
            return float(litellm.completion_cost(completion_response=response, model=self.model))
        except Exception:  # noqa: BLE001 - an unknown model raises one of several classes: the price is not known
            return None


def _writable(value: Any) -> Any:
    """The value with its texts as UTF-8 can carry them: halves of characters become question marks."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_writable(name): _writable(member) for name, member in value.items()}
    return [_writable(item) for item in value] if isinstance(value, list) else value


def _make_writable(chunk: Any) -> None:
    """Does the same with the texts of a chunk, in place; litellm itself could not put them together."""
    for choice in chunk.choices:
        delta = choice.delta
        holders = [(delta, "content"), (delta, "reasoning_content")]
        holders += [(call.function, "arguments") for call in delta.tool_calls or ()]
        for holder, name in holders:
            text = getattr(holder, name, None)
            if isinstance(text, str) and (written := _writable(text)) != text:
                setattr(holder, name, written)


def _pieces(chunk: Any) -> list[Delta]:
    """The pieces that a chunk brings."""
    if not chunk.choices:
        return []
    delta = chunk.choices[0].delta
    found: list[Delta] = []
    if reasoning := getattr(delta, "reasoning_content", None):
        found.append(Delta(reasoning=reasoning))
    if delta.content:
        found.append(Delta(text=delta.content))
    for call in delta.tool_calls or ():
        function = call.function
        found.append(Delta(call=CallDelta(call.index, call.id or "", function.name or "", function.arguments or "")))
    return found
