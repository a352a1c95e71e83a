"""Rows of JSONL, JSON, CSV and YAML files, with their lines."""

import csv
import gzip
import io
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ....tasks.errors import FileProblem
from ....tasks.files.document import Document, UnreadableError
from ....tasks.files.json_documents import parse_json
from ..errors import DatasetError

PlacedRow = tuple[int | None, Any]
"""The 1-based line of a row, and the row."""


def read_rows(path: Path) -> list[PlacedRow]:
    """Return the rows of a file by its suffix; `.gz` is unpacked.

    Values of a CSV file stay text: "007" is not 7. Raises DatasetError with all lines that cannot be read.
    """
    name = path.name.lower().removesuffix(".gz")
    suffix = "." + name.rpartition(".")[2]
    read = _READERS.get(suffix)
    if read is None:
        raise _refused(path, f"unknown kind of dataset: name it {', '.join(_READERS)}, or these with .gz")
    text = _text(path)
    try:
        return list(read(text, path))
    except UnreadableError as error:
        raise DatasetError(path, [FileProblem(error.line, error.field, error.message)]) from None


def _jsonl(text: str, path: Path) -> Iterator[PlacedRow]:
    problems: list[FileProblem] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip(" \t\r"):
            continue
        try:
            yield number, parse_json(line, number).value
        except UnreadableError as error:
            problems.append(FileProblem(error.line, error.field, error.message))
    if problems:
        raise DatasetError(path, problems)


def _json(text: str, path: Path) -> Iterator[PlacedRow]:
    yield from _of_document(parse_json(text))


def _yaml(text: str, path: Path) -> Iterator[PlacedRow]:
    from ....tasks.files.yaml_documents import parse_yaml

    for document in parse_yaml(text):
        yield from _of_document(document)


def _of_document(document: Document) -> Iterator[PlacedRow]:
    if isinstance(document.value, list):
        yield from ((document.line_of((index,)), row) for index, row in enumerate(document.value))
    else:
        yield 1, document.value


def _csv(text: str, path: Path) -> Iterator[PlacedRow]:
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # Python's own is 128 Ki characters
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    problems: list[FileProblem] = []
    columns: list[str] | None = None
    line = 1
    try:
        for values in reader:
            first, line = line, reader.line_num + 1
            if not values:
                continue
            if columns is None:
                columns = [name.strip() for name in values]  # `a, b` as people write it
                problems += _bad_columns(columns)
            elif len(values) != len(columns):
                message = f"has {len(values)} values where the first line names {len(columns)} columns"
                problems.append(FileProblem(first, None, message))
            else:
                yield first, dict(zip(columns, values, strict=True))
    except csv.Error as error:
        problems.append(FileProblem(reader.line_num, None, f"not valid CSV: {error}"))
    if problems:
        raise DatasetError(path, problems)


def _bad_columns(columns: list[str]) -> list[FileProblem]:
    twice = sorted({name for name in columns if columns.count(name) > 1})
    found = [FileProblem(1, name or "(no name)", "this column occurs twice; name each once") for name in twice]
    return found + ([FileProblem(1, None, "a column has no name")] if "" in columns and "" not in twice else [])


_READERS = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".yaml": _yaml, ".yml": _yaml}

_MOST_BYTES = 2 << 30
"""The most bytes of a dataset, which is read whole; the limit applies to the decompressed size."""


def _text(path: Path) -> str:
    try:
        if path.name.lower().endswith(".gz"):
            with gzip.open(path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise _refused(path, f"decompresses to more than {_MOST_BYTES >> 30} GiB")
        else:
            data = path.read_bytes()
    except FileNotFoundError:
        raise _refused(path, "no such file") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:  # a ValueError is of a path with a zero byte
        raise _refused(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return data.removeprefix(BOM_UTF8).decode()  # "utf-8-sig" counts the place of an error without the mark
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problem = FileProblem(line, None, "is not UTF-8 text: save the file as UTF-8")
        raise DatasetError(path, [problem]) from None


def _refused(path: Path, message: str) -> DatasetError:
    return DatasetError(path, [FileProblem(None, None, message)])
