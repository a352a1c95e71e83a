"""An Agent's run as the conversation it was.

What a step added to `/messages` in the state is what was said in it. Only documents are read: neither the Agent nor its
libraries need be there.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from ...errors import PatchError, TraceCorruptError, TraceError
from ...traces.file.children import children_of
from ...traces.file.record import Record
from ...traces.index.folder import Folder
from ...traces.index.indexed import IndexedTrace
from ...traces.json_patch.share import patched
from ...traces.step import told_error
from .nodes import Json, Nodes
from .requests import asked_in
from .step import children

_STEPS = 200
_NODES = 20_000
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]*")
_LARGEST_IMAGE = 2_000_000
_ROLES = ("system", "user", "assistant", "tool")


def chat(folder: Folder, trace: IndexedTrace, first: int, stop: int) -> Json:
    """Return what steps added to the conversation."""
    with trace.lock:
        open_ = trace.open_facts()
        total = trace.count + (open_ is not None)
        first = max(0, min(first, total))
        stop = max(first, min(stop, total, first + _STEPS))
        writing = _Writing(folder, trace)
        turns: list[Json] = []
        if not first and trace.query("SELECT 1 FROM snapshots WHERE trace = ? LIMIT 1"):
            turns.append(writing.beginning())
        if stop > first:
            document, _ = trace.document(min(first, trace.count))
            messages = document.get("messages") if isinstance(document, dict) else None
            said: list[Any] = list(messages) if isinstance(messages, list) else []
            for k in range(first, stop):
                records = trace.records(k)
                after = said if k >= trace.count else _after(said, records, trace)
                turns.append(writing.turn(k, records, said, after))
                said = after
        return {"from": first, "to": stop, "turns": turns, "total": total}


def _after(said: list[Any], records: Sequence[Record], trace: IndexedTrace) -> list[Any]:
    """Return the messages after a step's records."""
    document: Any = {"messages": said}
    for record in records:
        if record.kind in ("commit", "resume", "end"):
            ops = []
            for op in record.get("patch") or ():
                if op["path"] == "/messages" or op["path"].startswith("/messages/"):
                    ops.append(op)
                elif not op["path"]:
                    ops.append({**op, "value": {"messages": op["value"].get("messages") or []}})
            try:
                document = patched(document, ops)
            except PatchError as error:
                reason = f"the patch does not fit the state: {error}"
                raise TraceCorruptError(reason, record.seq + 1, path=trace.path) from None
    found = document.get("messages")
    return found if isinstance(found, list) else []


class _Writing:
    """Makes the turns of one answer."""

    def __init__(self, folder: Folder, trace: IndexedTrace) -> None:
        self.folder, self.trace = folder, trace
        self.nodes = Nodes(trace.value, most=_NODES)

    def beginning(self) -> Json:
        """Return what the run began with: the instructions, the earlier turns, the goal."""
        document, _ = self.trace.document(0)
        messages: list[Json] = []
        system = document.get("system") if isinstance(document, dict) else None
        if isinstance(system, dict):
            messages.append(self.message(system, "s:0:/system", {}, {}))
        listed = document.get("messages") if isinstance(document, dict) else None
        places = {id(each): f"s:0:/messages/{i}" for i, each in enumerate(listed)} if isinstance(listed, list) else {}
        messages += self.said(listed if isinstance(listed, list) else [], places, [])
        at = self.trace.header.at
        return {"k": -1, "at": at, "messages": messages, "compacted": 0, "asked": [], "children": [], "error": None}

    def turn(self, k: int, records: list[Record], before: list[Any], after: list[Any]) -> Json:
        """Return one step's turn."""
        first, last = 0, 0
        shorter = min(len(before), len(after))
        while first < shorter and before[first] is after[first]:
            first += 1
        while last < shorter - first and before[-1 - last] is after[-1 - last]:
            last += 1
        added = after[first : len(after) - last]
        places = {id(each): f"s:{k + 1}:/messages/{first + i}" for i, each in enumerate(added)}
        return {
            "k": k,
            "at": next((record.at for record in records if record.kind not in ("snapshot", "resume", "end")), None),
            "messages": self.said(added, places, records),
            "compacted": len(before) - first - last,
            "asked": asked_in(records, self.nodes, k),
            "children": children(self.folder, records),
            "error": self._error(k, records),
        }

    def said(self, messages: Sequence[Any], places: Mapping[int, str], records: Sequence[Record]) -> list[Json]:
        """Return messages; a tool's stands at its call, if the call is among them."""
        known = [each for each in messages if isinstance(each, dict)]
        calls = {call.get("id") for each in known for call in _calls(each)}
        answers = {
            each["tool_call_id"]: each
            for each in known
            if each.get("role") == "tool" and isinstance(each.get("tool_call_id"), str)
        }
        found: list[Json] = []
        for each in known:
            if each.get("role") == "tool" and each.get("tool_call_id") in calls:
                continue
            found.append(self.message(each, places.get(id(each)), answers, places, records))
        return found

    def message(
        self,
        message: Mapping[str, Any],
        at: str | None,
        answers: Mapping[Any, Any],
        places: Mapping[int, str],
        records: Sequence[Record] = (),
    ) -> Json:
        """Return one message."""
        role = message.get("role")
        metadata = message.get("metadata") if isinstance(message.get("metadata"), dict) else {}
        assert isinstance(metadata, dict)
        thought, thought_at = (
            metadata.get("reasoning_content"),
            None if at is None else f"{at}/metadata/reasoning_content",
        )
        if thought is None:
            blocks = metadata.get("thinking_blocks")
            texts = (
                [b["thinking"] for b in blocks if isinstance(b, dict) and isinstance(b.get("thinking"), str)]
                if (isinstance(blocks, list))
                else []
            )
            thought, thought_at = ("\n\n".join(texts) or None), None
        return {
            "role": role if role in _ROLES else "user",
            "parts": self._parts(message.get("body", message.get("content")), at),
            "reasoning": self.nodes.node(thought, thought_at) if thought is not None else None,
            "tool_calls": [self._call(call, answers, places, records) for call in _calls(message)],
            "usage": _usage(records) if role == "assistant" else None,
        }

    def _parts(self, body: Any, at: str | None) -> list[Json]:
        place = None if at is None else f"{at}/body"
        if isinstance(body, str):
            return [{"type": "text", "text": self.nodes.node(body, place)}] if body else []
        found: list[Json] = []
        for index, part in enumerate(body if isinstance(body, list) else ()):
            inner = None if place is None else f"{place}/{index}"
            if not isinstance(part, dict):
                continue
            image, audio = part.get("image_url"), part.get("input_audio")
            if isinstance(part.get("text"), str):
                found.append({"type": "text", "text": self.nodes.node(part["text"], inner and f"{inner}/text")})
            elif isinstance(image, dict) and isinstance(url := image.get("url"), str):
                found.append({"type": "image", **_image(url)})
            elif isinstance(audio, dict):
                said = audio.get("transcript")
                transcript = said if isinstance(said, str) else None
                found.append({"type": "audio", "format": str(audio.get("format") or ""), "transcript": transcript})
            else:
                found.append({"type": "text", "text": self.nodes.node(orjson.dumps(part).decode(), None)})
        return found

    def _call(
        self, call: Mapping[str, Any], answers: Mapping[Any, Any], places: Mapping[int, str], records: Sequence[Record]
    ) -> Json:
        function = call.get("function") if isinstance(call.get("function"), dict) else {}
        assert isinstance(function, dict)
        name, given = str(call.get("id") or ""), function.get("arguments")
        try:
            args = orjson.loads(given) if isinstance(given, str) else given
        except orjson.JSONDecodeError:
            args = given
        answer = answers.get(name)
        output: Json | None = None
        error: str | None = None
        images: list[Json] = []
        if isinstance(answer, dict):
            at = places.get(id(answer))
            body = answer.get("body", answer.get("content"))
            images = [_image(url) for url in _image_urls(body)]
            place = None if at is None else f"{at}/body"
            if images and isinstance(body, list):
                rest = [part for part in body if not (isinstance(part, dict) and "image_url" in part)]
                output = self.nodes.node(rest) if rest else None
            else:
                output = self.nodes.node(body, place)
            metadata = answer.get("metadata")
            told = metadata.get("error") if isinstance(metadata, dict) else None
            error = str(told) if told is not None else None
        run, seconds, failed = self._carried_out(name, records)
        return {
            "id": name,
            "name": str(function.get("name") or ""),
            "args": self.nodes.node(args),
            "output": output,
            "error": failed if error is None else error,
            "seconds": seconds,
            "run": run,
            "images": images,
        }

    def _carried_out(self, name: str, records: Sequence[Record]) -> tuple[str | None, float | None, str | None]:
        """Return the child run that a call started, how long the call took, and its error."""
        intents = [record for record in records if record.kind == "intent"]
        mine = {record.seq for record in intents if record.get("action") == name}
        run: str | None = None
        for record in intents:
            if record.get("parent") in mine:
                for child in children_of(record):
                    run = self.folder.named(child.run_id) or child.run_id
        ended = next((record for record in records if record.kind == "outcome" and record["intent"] in mine), None)
        if ended is None:
            return run, None, None
        told = told_error(ended.get("result"))
        if told is None and ended.get("error") is not None:
            told = (ended["error"]["type"], ended["error"]["message"])
        return run, ended.get("seconds"), None if told is None else f"{told[0]}: {told[1]}"

    def _error(self, k: int, records: Sequence[Record]) -> Json | None:
        """Return the error of a step: the end's, or that of a model call without an answer after it."""
        if k >= self.trace.count - 1:
            try:
                end = self.trace.ending().record or {}
            except TraceError:
                end = {}
            error = end.get("error")
            if error is not None and k == self.trace.count - (self.trace.open_facts() is None):
                return {"type": error["type"], "message": error["message"]}
        asked = [record for record in records if record.kind == "intent" and record.get("name") == "generate"]
        seqs = {record.seq for record in asked}
        ends = [record for record in records if record.kind == "outcome" and record["intent"] in seqs]
        error = ends[-1].get("error") if ends else None
        return None if error is None else {"type": error["type"], "message": error["message"]}


def _calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = message.get("tool_calls")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _image(url: str) -> Json:
    """Return a picture: its URL only if that holds the picture itself."""
    shown = url if len(url) <= _LARGEST_IMAGE and _IMAGE.fullmatch(url) else None
    return {"url": shown, "bytes": len(url.partition(",")[2]) * 3 // 4 if url.startswith("data:") else 0}


def _image_urls(body: Any) -> Iterator[str]:
    for part in body if isinstance(body, list) else ():
        image = part.get("image_url") if isinstance(part, dict) else None
        if isinstance(image, dict) and isinstance(image.get("url"), str):
            yield image["url"]


def _usage(records: Sequence[Record]) -> Json | None:
    """Return what the model calls of a step have used."""
    used = [record["usage"] for record in records if record.kind == "outcome" and record.get("usage")]
    if not used:
        return None
    costs = [each.get("cost") for each in used]
    return {
        "tokens_in": sum(each.get("tokens_in", 0) for each in used),
        "tokens_out": sum(each.get("tokens_out", 0) for each in used),
        "cost": None if None in costs else sum(costs),
    }
