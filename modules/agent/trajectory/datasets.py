"""Records of trajectories as a dataset of the `datasets` package, which is loaded on its first use."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from ....errors import ExternalError
from .converters import trajectory_to_jsonl_record
from .trajectory import Trajectory

FORMATS = ("messages", "chat", "turns")
_INT64 = 2**63


class DatasetsMissingError(ExternalError, ImportError):
    """The `datasets` package is not installed, or too old."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}: pip install 'refold[datasets]'")


def trajectories_to_hf_dataset(trajectories: Sequence[Mapping[str, Any] | Trajectory], format: str = "messages") -> Any:
    """A `datasets.Dataset` of records as `trajectory_to_jsonl_record` gives them; a Trajectory is made one.

    - `messages`: the columns `messages` and `tools`, and one for each key that the metadata of any record has
    - `chat`: `conversation` (role and content alone), `agent_name`, `task_type`, `success`
    - `turns`: a row for each assistant's message: `system`, `history`, `response`, `tool_calls`, `agent_name`,
      `task_type`

    All rows have all columns, None where a record has nothing to say. Messages, tools and values of several types are
    kept as the JSON that they are: no row gets keys of another one, and nothing has to have one type in all rows.

    Raises ValueError for another format, DatasetsMissingError where the package is not there.
    """
    if format not in FORMATS:
        raise ValueError(f"format is one of {', '.join(FORMATS)}; got {format!r}")
    library = _library()
    records = [trajectory_to_jsonl_record(r) if isinstance(r, Trajectory) else r for r in trajectories]
    make = {"messages": _messages, "chat": _chats, "turns": _turns}[format]
    columns, rows = make(library, records)
    full = [{name: row.get(name) for name in columns} for row in rows]
    features = library.Features(
        {name: kind or _kind(library, [r[name] for r in full]) for name, kind in columns.items()}
    )
    if not full:
        return library.Dataset.from_dict({name: [] for name in columns}, features=features)
    return library.Dataset.from_list(full, features=features)


_Table = tuple[dict[str, Any], list[dict[str, Any]]]
"""Columns, with their type where it is known beforehand, and rows."""


def _messages(library: Any, records: Sequence[Mapping[str, Any]]) -> _Table:
    columns: dict[str, Any] = {"messages": library.List(library.Json()), "tools": library.Json()}
    own = set(columns)
    rows = []
    for record in records:
        row = {"messages": list(record.get("messages") or ()), "tools": record.get("tools")}
        others = {name: value for name, value in record.items() if name not in (*own, "metadata")}
        for name, value in {**others, **(record.get("metadata") or {})}.items():
            name = f"metadata_{name}" if name in own else name
            columns.setdefault(name, None)
            row[name] = value
        rows.append(row)
    return columns, rows


def _chats(library: Any, records: Sequence[Mapping[str, Any]]) -> _Table:
    rows = [chat_of(record) for record in records]
    columns = {"conversation": _said_kind(library, rows, "conversation"), **_label_kinds(library), "success": None}
    return columns, rows


def chat_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record's conversation with roles and contents alone, and what its metadata says of it."""
    metadata = record.get("metadata") or {}
    said = [_said(message) for message in record.get("messages") or ()]
    return {"conversation": said, **_labels(metadata), "success": metadata.get("success")}


def _turns(library: Any, records: Sequence[Mapping[str, Any]]) -> _Table:
    rows = []
    for record in records:
        labels = _labels(record.get("metadata") or {})
        system: Any = None
        history: list[dict[str, Any]] = []
        for message in record.get("messages") or ():
            role = message.get("role")
            if role == "system":
                system = message.get("content")
                continue
            if role == "assistant":
                said = {"response": message.get("content") or "", "tool_calls": message.get("tool_calls")}
                rows.append({"system": system, "history": list(history), **said, **labels})
            history.append(_said(message))
    columns = {
        "system": None,
        "history": _said_kind(library, rows, "history"),
        "response": None,
        "tool_calls": library.Json(),
        **_label_kinds(library),
    }
    return columns, rows


def _said(message: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": message.get("role"), "content": message.get("content") or ""}


def _said_kind(library: Any, rows: Sequence[Mapping[str, Any]], column: str) -> Any:
    """Role and content as texts, or, where some content has parts, as JSON."""
    if all(isinstance(message["content"], str) for row in rows for message in row[column]):
        return library.List({"role": library.Value("string"), "content": library.Value("string")})
    return library.List(library.Json())


def _labels(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(metadata.get(name) or "unknown") for name in ("agent_name", "task_type")}


def _label_kinds(library: Any) -> dict[str, Any]:
    return {name: library.Value("string") for name in ("agent_name", "task_type")}


def _kind(library: Any, values: Sequence[Any]) -> Any:
    """The type of a column: that of its values, where they have one that holds them all, else JSON."""
    types = {type(value) for value in values if value is not None}
    if types <= {str}:
        return library.Value("string")
    if types == {bool}:
        return library.Value("bool")
    if types == {float}:
        return library.Value("float64")
    if types == {int} and all(value is None or -_INT64 <= value < _INT64 for value in values):
        return library.Value("int64")
    return library.Json()


def _library() -> Any:
    try:
        library: Any = import_module("datasets")
    except ModuleNotFoundError as error:
        if error.name != "datasets":
            raise
        raise DatasetsMissingError("datasets, which makes datasets of trajectories, is not installed") from None
    if not hasattr(library, "Json"):
        raise DatasetsMissingError(f"datasets {library.__version__} has no type for JSON, which came with 4.7")
    return library
