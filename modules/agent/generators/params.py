"""The parameters of a request: sampling, limits, tools.

None leaves a parameter to the generator, and then to the provider.
"""

from typing import Any, Literal

from ....engine import StateModel
from ..chat.tool_calls import ToolChoice, ToolDefinition


class GenerateParams(StateModel):
    """The parameters of a generation.

    Parameters of a request override those of its generator. `timeout` is in seconds; refold enforces it for every
    generator. `cache` marks the prompt for caching, see `mark_for_caching`. `extra` is sent to the provider unchanged.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    top_k: int | None = None
    top_p: float | None = None
    stop: list[str] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    api_base: str | None = None
    timeout: float | None = None
    seed: int | None = None
    tools: list[ToolDefinition] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    cache: Literal["latest"] | None = None
    extra: dict[str, Any] = {}

    def merge_with(self, *others: "GenerateParams | None") -> "GenerateParams":
        """Return these parameters overridden by the others; the last has priority.

        The `extra`s are merged name by name.
        """
        changes: dict[str, Any] = {}
        extra = dict(self.extra)
        for other in others:
            if other is not None:
                changes |= {name: value for name, value in other.__dict__.items() if value is not None}
                extra |= other.extra
        return self.model_copy(update={**changes, "extra": extra}) if changes else self

    def given(self) -> dict[str, Any]:
        """Return the parameters that are set, as plain JSON values."""
        return {name: value for name, value in self.to_dict().items() if value not in (None, {})}
