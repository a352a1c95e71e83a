"""Rules held against where a page leads on the way: each redirect, and the addresses of hosts."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...agent.chat.tool_calls import ToolCall
from ...agent.tools import current_tool_call
from ...tools.addresses import Address, meant_by
from ...tools.fetching import use_fetch
from .tool_rules import ToolRules


@dataclass(frozen=True)
class HopGuard:
    """Lets a page be fetched on the way if the rules let it be fetched by a call of its own, without a question."""

    rules: ToolRules

    def why_not(self, url: str) -> str | None:
        """Why a redirect to this URL is not followed."""
        verdict = self.rules.verdict(_call(url))
        if verdict.action == "allow":
            return None
        asks = "; fetch it by a call of its own, so that somebody can be asked" if verdict.action == "ask" else ""
        return f"{verdict.why}{asks}"

    def why_not_at(self, url: str, address: Address) -> str | None:
        """Why this URL is not fetched from this address: by rules that were not asked about, as they name another."""
        for each in meant_by(address):
            written = f"[{each}]" if each.version == 6 else str(each)
            why = self.rules.refuses_besides(_call(url), _call(urlsplit(url)._replace(netloc=written).geturl()))
            if why is not None:
                return why
        return None


def _call(url: str) -> ToolCall:
    call = current_tool_call.get()
    name = "fetch" if call is None else call.name
    return ToolCall.of("hop", name, {"urls": [url]} if name.endswith("web_extract") else {"url": url})


def guarded_hops(rules: ToolRules | None) -> AbstractContextManager[None]:
    """What tools are called in so that rules hold for each hop."""
    return nullcontext() if rules is None else use_fetch(guard=HopGuard(rules))
