"""The first half of a build: messages drawn from sources into one table, keyed and counted, a column at a time.

Decides what a stored row needs that no source gives: keys, folded texts where the database could not fold them itself,
words, scripts, copy keys. Names are stored once each and numbered. Must never know how the rows will be sorted.
Memory holds one batch of rows, and every name; the table may spill.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, fields
from hashlib import blake2b
from itertools import islice
from operator import attrgetter
from typing import Any

import duckdb
import numpy as np
import regex
from numpy.typing import NDArray

from engine.model import SourceMessage, message_id_of
from engine.snapshot.database import asking
from engine.snapshot.letters import Letters, raw_of
from engine.snapshot.tokens import word_counts
from engine.text import fold

__all__ = ["AUTHORS", "CONVERSATIONS", "STAGED", "VALUES", "stage"]

STAGED = "staged"
CONVERSATIONS, AUTHORS = "staged_conversations", "staged_authors"
"""Tables of every pair of id and name: `number`, `id`, `name`."""

VALUES = {name: f"staged_{name}" for name in ("from_role", "to_role", "kind", "status")}
"""For each of these columns the table of its values: `number`, `id`."""

_NULLABLE = ("to_role", "status")

_BATCH_ROWS = 40_000
"""Rows drawn at a time: about 40 MB of Python objects."""

_PART_ROWS = 10_000
"""Rows of them converted at a time, while the part before is inserted."""

_ID_CHARS = 120
"""Longest part of an id: it stands in every line that shows the message."""

_PLAIN_ID = regex.compile(r"[\p{L}\p{N}\p{P}\p{S}--\[\]⟦⟧⏎]+", regex.V1)
_ASCII_NOT_PLAIN = regex.compile(r"[\x00-\x20\[\]\x7F]")
_NOT_PLAIN = regex.compile(r"[^\p{L}\p{N}\p{P}\p{S}]|[\[\]⟦⟧⏎]", regex.V1)

_SURROGATE = regex.compile("[\ud800-\udfff]")

_COPIED_WORDS = 5
"""Texts of so many words are copies whoever wrote them, shorter ones only of their author's."""

_FIELDS = tuple(field.name for field in fields(SourceMessage))

_NO_VALUE = -1
_NEVER = -(1 << 62)
"""No instant: an array of integers has no null."""

_COLUMNS = {
    "sequence": ("BIGINT", "sequence"),
    "message_key": ("UBIGINT", "message_key"),
    "copy_key": ("UBIGINT", "copy_key"),
    "conversation": ("UINTEGER", "conversation"),
    "author": ("UINTEGER", "author"),
    **{name: ("INTEGER", f"nullif({name}, {_NO_VALUE})") for name in VALUES},
    "sent_at": ("BIGINT", "sent_at"),
    "edited_at": ("BIGINT", f"nullif(edited_at, {_NEVER})"),
    "words": ("UINTEGER", "words"),
    "scripts": ("USMALLINT", "scripts"),
    "message_id": ("VARCHAR", "message_id"),
    # Null is the message's own id.
    "thread_id": ("VARCHAR", "nullif(thread_id, '')"),
    "topic": ("VARCHAR", "topic"),
    "body": ("VARCHAR", "body"),
    "link": ("VARCHAR", "nullif(link, '')"),
    "attributes": ("VARCHAR", "nullif(attributes, '')"),
    # Null is the text in lower case: so it is for ASCII, and the database does that itself.
    "folded_topic": ("VARCHAR", "nullif(folded_topic, '')"),
    "folded_body": ("VARCHAR", "nullif(folded_body, '')"),
}
"""Type of each column and what it is made of: DuckDB takes arrays of Python strings only without nulls."""


def stage(connection: duckdb.DuckDBPyConnection, messages: Iterable[SourceMessage]) -> Iterator[int]:
    """Create the staged tables and fill them, yielding the number of rows so far after each batch.

    The names are there once all rows have been drawn.
    """
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in _COLUMNS.items())
    connection.execute(f"CREATE TABLE {STAGED} ({columns})")
    select = ", ".join(f"{made} AS {name}" for name, (_, made) in _COLUMNS.items())
    batches = _Batches(Letters(asking(connection)))
    insert = f"INSERT INTO {STAGED} SELECT {select} FROM part"
    rows = iter(messages)
    done = 0
    with closing(connection.cursor()) as cursor, ThreadPoolExecutor(1) as other:
        while batch := list(islice(rows, _BATCH_ROWS)):
            inserted: Future[None] = other.submit(lambda: None)
            for start in range(0, len(batch), _PART_ROWS):
                part = batches.arrays(batch[start : start + _PART_ROWS], done + start)
                inserted.result()
                inserted = other.submit(_insert, cursor, insert, part)
            inserted.result()
            done += len(batch)
            yield done
    batches.write_names(connection)


def _insert(cursor: duckdb.DuckDBPyConnection, insert: str, part: dict[str, NDArray[Any]]) -> None:
    cursor.register("part", part)
    cursor.execute(insert)
    cursor.unregister("part")


class _Names:
    """What occurs again and again, numbered in the order met: each is made fit to be stored, and stored, once."""

    def __init__(self, fit: Callable[[Any], tuple[str, ...] | None]) -> None:
        self._fit = fit
        self._numbers: dict[Any, int] = {}
        self._stored: dict[tuple[str, ...], int] = {}
        self.firsts: list[str] = []
        """The first string of each, by number."""

    def numbers(self, names: Sequence[Any]) -> list[int]:
        """The number of each, `_NO_VALUE` where there is nothing to store."""
        known = self._numbers
        for name in dict.fromkeys(names):
            if name not in known:
                known[name] = self._number(self._fit(name))
        return [known[name] for name in names]

    def _number(self, stored: tuple[str, ...] | None) -> int:
        if stored is None:
            return _NO_VALUE
        if stored not in self._stored:
            self._stored[stored] = len(self.firsts)
            self.firsts.append(stored[0])
        return self._stored[stored]

    def write(self, connection: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> None:
        """Make a table of them."""
        rows = list(self._stored)
        given = {name: np.array([row[at] for row in rows], dtype=np.object_) for at, name in enumerate(columns)}
        connection.register("names", {"number": np.arange(len(rows), dtype=np.uint32), **given})
        typed = ", ".join(f"{name}::VARCHAR AS {name}" for name in columns)
        connection.execute(f"CREATE TABLE {table} AS SELECT number, {typed} FROM names")
        connection.unregister("names")


class _Batches:
    """Messages made into columns, and the names they share."""

    def __init__(self, letters: Letters) -> None:
        self._letters = letters
        self._conversations = _Names(lambda pair: (_identifier(pair[0]), _clean(pair[1])))
        self._authors = _Names(lambda pair: (_clean(pair[0]), _clean(pair[1])))
        self._values = {name: _Names(_fit_or_none if name in _NULLABLE else _fit) for name in VALUES}

    def write_names(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the tables of names."""
        self._conversations.write(connection, CONVERSATIONS, ("id", "name"))
        self._authors.write(connection, AUTHORS, ("id", "name"))
        for name, values in self._values.items():
            values.write(connection, VALUES[name], ("id",))

    def arrays(self, batch: list[SourceMessage], first: int) -> dict[str, NDArray[Any]]:
        """The columns of a batch, of which so many rows went before."""
        given = {name: list(map(attrgetter(name), batch)) for name in _FIELDS}
        natives = given["native_id"]
        threads = given["thread_native_id"]
        conversations = self._conversations.numbers(
            list(zip(given["conversation_id"], given["conversation"], strict=True))
        )
        prefixes = list(map(self._conversations.firsts.__getitem__, conversations))
        message_ids = list(map(message_id_of, prefixes, _identifiers(natives)))
        thread_ids = [
            message_id_of(prefix, _identifier(thread)) if thread and thread != native else ""
            for prefix, native, thread in zip(prefixes, natives, threads, strict=True)
        ]
        authors = self._authors.numbers(list(zip(given["author_id"], given["author"], strict=True)))
        author_ids = self._authors.firsts
        topic, body = self._field(given["topic"]), self._field(given["body"])
        words = topic.words + body.words
        texts = list(map(b"%b\0%b".__mod__, zip(topic.split, body.split, strict=True)))
        for at in np.flatnonzero(words < _COPIED_WORDS).tolist():
            texts[at] = _apart(texts[at], message_ids[at], author_ids[authors[at]])
        numbers: dict[str, NDArray[Any]] = {
            "sequence": np.arange(first, first + len(batch)),
            "message_key": _keys(map(str.encode, message_ids)),
            "copy_key": _keys(texts),
            "conversation": np.array(conversations, dtype=np.uint32),
            "author": np.array(authors, dtype=np.uint32),
            **{name: np.array(of.numbers(given[name]), dtype=np.int32) for name, of in self._values.items()},
            "sent_at": np.array(given["sent_at"], dtype=np.int64),
            "edited_at": np.array([_NEVER if at is None else at for at in given["edited_at"]], dtype=np.int64),
            "words": words,
            "scripts": topic.scripts | body.scripts,
        }
        columns: dict[str, Sequence[str]] = {
            "message_id": message_ids,
            "thread_id": thread_ids,
            "topic": topic.texts,
            "body": body.texts,
            "link": _cleaned([link or "" for link in given["link"]]),
            "attributes": _cleaned([attributes or "" for attributes in given["attributes"]]),
            "folded_topic": topic.folded,
            "folded_body": body.folded,
        }
        return numbers | {name: np.array(column, dtype=np.object_) for name, column in columns.items()}

    def _field(self, given: Sequence[str]) -> "_Field":
        texts = _cleaned(given)
        folded = list(map(fold, texts))
        raw = raw_of(folded)
        return _Field(
            texts,
            ["" if text.isascii() else found for text, found in zip(texts, folded, strict=True)],
            raw.tobytes().split(b"\0", len(texts))[:-1],
            word_counts(raw, len(texts), self._letters),
            self._letters.scripts(raw_of(texts), len(texts)),
        )


@dataclass(frozen=True, slots=True)
class _Field:
    """Topics or bodies: cleaned; folded where they are not ASCII, else empty; folded, in bytes; words; scripts."""

    texts: Sequence[str]
    folded: list[str]
    split: list[bytes]
    words: NDArray[np.uint32]
    scripts: NDArray[np.uint16]


def _fit(value: str) -> tuple[str, ...]:
    return (_clean(value),)


def _fit_or_none(value: str | None) -> tuple[str, ...] | None:
    return _fit(value) if value else None


def _identifiers(texts: Sequence[str]) -> Sequence[str]:
    whole, sizes = "".join(texts), list(map(len, texts))
    plain = whole.isascii() and not _ASCII_NOT_PLAIN.search(whole) and 0 < min(sizes) <= max(sizes) <= _ID_CHARS
    return texts if plain else list(map(_identifier, texts))


def _identifier(text: str) -> str:
    """An id that can be printed, copied and passed back: no blanks, brackets or invisible characters, and short.

    What had to change is told apart by a digest of what it was.
    """
    if len(text) <= _ID_CHARS and _PLAIN_ID.fullmatch(text):
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{_NOT_PLAIN.sub('_', text)[: _ID_CHARS - 17]}~{digest}"


def _cleaned(texts: Sequence[str]) -> Sequence[str]:
    whole = "".join(texts)
    return list(map(_clean, texts)) if "\0" in whole or _has_surrogate(whole) else texts


def _clean(text: str) -> str:
    """NUL cannot be kept in Parquet by every reader, a lone surrogate in none: both become U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return _SURROGATE.sub("\ufffd", text) if _has_surrogate(text) else text


def _has_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _keys(texts: Iterable[bytes]) -> NDArray[np.uint64]:
    """For each the first 8 bytes of its BLAKE2b, big endian, as `message_key_of` makes them."""
    digests = b"".join([blake2b(text, digest_size=8).digest() for text in texts])
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64)


def _apart(text: bytes, message_id: str, author_id: str) -> bytes:
    """What is hashed of a short text, equal for one author only; for a message without text it is its own id."""
    own = b"\0\0" + message_id.encode() if text == b"\0" else text
    return own + b"\0\0" + author_id.encode()
