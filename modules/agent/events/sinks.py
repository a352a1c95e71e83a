"""Destinations for events: a run's trace, a file, or a callable."""

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ....engine import emit


class _Writable(Protocol):
    def write(self, text: str, /) -> Any: ...


Sink: TypeAlias = str | PathLike[str] | _Writable | Callable[[dict[str, Any]], Any] | None


def write_document(document: dict[str, Any], sink: Sink) -> None:
    """Write a document to a sink; see `AgentEvent.emit`."""
    if sink is None:
        emit("agent_event", **document)
    elif isinstance(sink, str | PathLike):
        with Path(sink).open("a", encoding="utf-8") as file:
            file.write(_line(document))
    elif callable(sink):
        sink(document)
    else:
        sink.write(_line(document))


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False) + "\n"
