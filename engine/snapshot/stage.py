"""The first half of a build: messages drawn from sources into one table, folded and keyed.

Decides what a stored row needs that no source gives: keys, folded texts, copy keys. Must never know how the rows
will be sorted or numbered. Memory holds one batch of rows; the table may spill.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any

import duckdb
import numpy as np
import regex
from numpy.typing import NDArray

from engine.model import SourceMessage, message_id_of, message_key_of
from engine.text import fold

__all__ = ["STAGED", "stage"]

STAGED = "staged"

_BATCH_ROWS = 20_000
"""Rows converted at a time: about 20 MB of Python objects."""

_ID_CHARS = 120
"""Longest part of an id: it stands in every line that shows the message."""

_PLAIN_ID = regex.compile(r"[\p{L}\p{N}\p{P}\p{S}--\[\]⟦⟧⏎]+", regex.V1)
_NOT_PLAIN = regex.compile(r"[^\p{L}\p{N}\p{P}\p{S}]|[\[\]⟦⟧⏎]", regex.V1)

_SURROGATE = regex.compile("[\ud800-\udfff]")

_COLUMNS = {
    "sequence": "BIGINT",
    "message_id": "VARCHAR",
    "message_key": "UBIGINT",
    "text_key": "UBIGINT",
    "author_text_key": "UBIGINT",
    "conversation_id": "VARCHAR",
    "conversation": "VARCHAR",
    "thread_id": "VARCHAR",
    "sent_at": "BIGINT",
    "author_id": "VARCHAR",
    "author": "VARCHAR",
    "from_role": "VARCHAR",
    "to_role": "VARCHAR",
    "kind": "VARCHAR",
    "status": "VARCHAR",
    "topic": "VARCHAR",
    "body": "VARCHAR",
    "link": "VARCHAR",
    "edited_at": "BIGINT",
    "attributes": "VARCHAR",
    "folded_topic": "VARCHAR",
    "folded_body": "VARCHAR",
}

_NUMBERS: dict[str, type[np.generic]] = {
    "sequence": np.int64,
    "message_key": np.uint64,
    "text_key": np.uint64,
    "author_text_key": np.uint64,
    "sent_at": np.int64,
    "edited_at": np.int64,
}

_NEVER = -(1 << 62)
"""No instant: an array of integers has no null."""

_NULLABLE = {"to_role": "''", "status": "''", "link": "''", "attributes": "''", "edited_at": str(_NEVER)}
"""What stands for null on the way: DuckDB takes arrays of Python strings only without nulls."""


def stage(connection: duckdb.DuckDBPyConnection, messages: Iterable[SourceMessage]) -> Iterator[int]:
    """Create the staged table and fill it, yielding the number of rows so far after each batch."""
    columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    connection.execute(f"CREATE TABLE {STAGED} ({columns})")
    select = ", ".join(f"nullif({name}, {_NULLABLE[name]})" if name in _NULLABLE else name for name in _COLUMNS)
    rows = enumerate(messages)
    done = 0
    while batch := list(islice(rows, _BATCH_ROWS)):
        connection.register("batch", _arrays(batch))
        connection.execute(f"INSERT INTO {STAGED} SELECT {select} FROM batch")
        connection.unregister("batch")
        done += len(batch)
        yield done


def _arrays(batch: list[tuple[int, SourceMessage]]) -> dict[str, NDArray[Any]]:
    columns: list[list[Any]] = [[] for _ in _COLUMNS]
    for sequence, m in batch:
        conversation_id = _identifier(m.conversation_id)
        message_id = message_id_of(conversation_id, _identifier(m.native_id))
        thread_id = message_id_of(conversation_id, _identifier(m.thread_native_id or m.native_id))
        topic, body = _clean(m.topic), _clean(m.body)
        folded_topic, folded_body = fold(topic), fold(body)
        author_id = _clean(m.author_id)
        row = (
            sequence,
            message_id,
            message_key_of(message_id),
            *_copy_keys(message_id, author_id, folded_topic, folded_body),
            conversation_id,
            _clean(m.conversation),
            thread_id,
            m.sent_at,
            author_id,
            _clean(m.author),
            _clean(m.from_role),
            _clean(m.to_role or ""),
            _clean(m.kind),
            _clean(m.status or ""),
            topic,
            body,
            _clean(m.link or ""),
            _NEVER if m.edited_at is None else m.edited_at,
            _clean(m.attributes or ""),
            folded_topic,
            folded_body,
        )
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return {
        name: np.array(column, dtype=_NUMBERS.get(name, np.object_))
        for name, column in zip(_COLUMNS, columns, strict=True)
    }


def _identifier(text: str) -> str:
    """An id that can be printed, copied and passed back: no blanks, brackets or invisible characters, and short.

    What had to change is told apart by a digest of what it was.
    """
    if len(text) <= _ID_CHARS and _PLAIN_ID.fullmatch(text):
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{_NOT_PLAIN.sub('_', text)[: _ID_CHARS - 17]}~{digest}"


def _clean(text: str) -> str:
    """NUL cannot be kept in Parquet by every reader, a lone surrogate in none: both become U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", "�")
    if text.isascii():
        return text
    return _SURROGATE.sub("\ufffd", text) if _has_surrogate(text) else text


def _has_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _copy_keys(message_id: str, author_id: str, folded_topic: str, folded_body: str) -> tuple[int, int]:
    """Keys that are equal where texts are, over all authors and for one author; a message without text has its own."""
    text = f"{folded_topic}\0{folded_body}" if folded_topic or folded_body else f"\0\0{message_id}"
    hashed = blake2b(text.encode(), digest_size=8)
    alone = hashed.copy()
    alone.update(f"\0\0{author_id}".encode())
    return int.from_bytes(hashed.digest(), "big"), int.from_bytes(alone.digest(), "big")
