"""An export's rows as bytes: JSON lines, CSV that no spreadsheet executes, Parquet.

Decides columns, their order and spelling. Rows come in and bytes go out in pieces; only Parquet passes a file. Must
never know where bytes go, or why a message is among them.
"""

import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from engine.choices import COLUMNS
from engine.model import Message
from engine.snapshot.database import DatabaseSettings, connect, failures_told
from engine.snapshot.scratch import scratch
from engine.times import iso_micros

__all__ = ["MIME_TYPES", "encoded"]

MIME_TYPES = {"jsonl": "application/jsonl", "csv": "text/csv", "parquet": "application/vnd.apache.parquet"}

_PIECE_BYTES = 1 << 18
"""Bytes handed on at a time: enough to make a write worth it."""

_LEAST_OBJECT_BYTES = 1 << 20
"""DuckDB's buffers are a multiple of the longest line it is told to expect."""

_EXECUTED = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""First characters by which a spreadsheet takes a cell for a formula, full-width ones in some countries."""


_CONTROLS = frozenset(map(chr, range(32)))
_SKIPPED = "".join(_CONTROLS) + " \u00a0\ufeff"
"""What a spreadsheet may pass over at the start of a cell."""


def encoded(
    messages: Iterable[Message], columns: Sequence[str], form: str, database: DatabaseSettings
) -> Iterator[bytes]:
    """The file of these messages in pieces; `form` is one of FORMATS."""
    if form == "csv":
        return _csv(messages, columns)
    if form == "parquet":
        return _parquet(messages, columns, database)
    return _pieces(_json_line(message, columns) for message in messages)


def _value(message: Message, column: str) -> Any:
    value = getattr(message, column)
    return iso_micros(value) if value is not None and COLUMNS[column] == "TIMESTAMP" else value


def _json_line(message: Message, columns: Sequence[str]) -> bytes:
    """One object, without what is null or empty."""
    row = {column: value for column in columns if (value := _value(message, column)) not in (None, "")}
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _csv(messages: Iterable[Message], columns: Sequence[str]) -> Iterator[bytes]:
    """RFC 4180 with a header; a cell that a spreadsheet would execute gets an apostrophe in front."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(columns)
    for message in messages:
        writer.writerow([_inert(_value(message, column)) for column in columns])
        if buffer.tell() >= _PIECE_BYTES:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def _inert(value: Any) -> str:
    text = "" if value is None else str(value)
    # Some strip control characters and blanks first, and then look.
    bare = text.lstrip(_SKIPPED)
    return f"'{text}" if bare.startswith(_EXECUTED) or text[:1] in _CONTROLS else text


def _parquet(messages: Iterable[Message], columns: Sequence[str], database: DatabaseSettings) -> Iterator[bytes]:
    """Through two files in a temporary folder: DuckDB writes Parquet from JSON lines, not from a stream."""
    folder = scratch(database.temp_folder)
    with failures_told("export as jsonl"), tempfile.TemporaryDirectory(prefix="export-", dir=folder) as work:
        lines, target = Path(work) / "rows.jsonl", Path(work) / "rows.parquet"
        longest = _LEAST_OBJECT_BYTES
        with lines.open("wb") as file:
            for message in messages:
                line = _json_line(message, columns)
                longest = max(longest, len(line))
                file.write(line)
        types = ", ".join(f"{column}: '{COLUMNS[column]}'" for column in columns)
        connection = connect(database, [f"{work}/"])
        try:
            connection.execute(
                f"COPY (SELECT {', '.join(columns)} FROM read_json({_literal(lines)}, format = 'newline_delimited',"
                f" columns = {{{types}}}, maximum_object_size = {longest}))"
                f" TO {_literal(target)} (FORMAT parquet, COMPRESSION zstd)"
            )
        finally:
            connection.close()
        with target.open("rb") as file:
            yield from iter(_reader(file), b"")


def _reader(file: io.BufferedReader) -> Callable[[], bytes]:
    return lambda: file.read(_PIECE_BYTES)


def _literal(path: Path) -> str:
    """A path of our own making as an SQL string: COPY takes no parameters."""
    return "'" + str(path).replace("'", "''") + "'"


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    piece = bytearray()
    for line in lines:
        piece += line
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)
