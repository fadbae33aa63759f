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
from numpy.typing import NDArray

from engine.copies import COPIED_WORDS, of_its_author
from engine.model import SourceMessage, message_id_of
from engine.snapshot.columns import Column, Columns, numbers, texts
from engine.snapshot.database import asking
from engine.snapshot.fit import clean, cleaned, identifier, identifiers
from engine.snapshot.letters import Bytes, Letters, raw_of
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

_FIELDS = tuple(field.name for field in fields(SourceMessage))

_NO_VALUE = -1

_COLUMNS = {
    "sequence": "BIGINT",
    "message_key": "UBIGINT",
    "copy_key": "UBIGINT",
    "conversation": "UINTEGER",
    "author": "UINTEGER",
    **dict.fromkeys(VALUES, "INTEGER"),
    "sent_at": "BIGINT",
    "edited_at": "BIGINT",
    "words": "UINTEGER",
    "scripts": "USMALLINT",
    "message_id": "VARCHAR",
    # Null is the message's own id.
    "thread_id": "VARCHAR",
    "topic": "VARCHAR",
    "body": "VARCHAR",
    "link": "VARCHAR",
    "attributes": "VARCHAR",
    # Null is the text in lower case: so it is for ASCII, and the database does that itself.
    "folded_topic": "VARCHAR",
    "folded_body": "VARCHAR",
}
"""Type of each column."""


def stage(connection: duckdb.DuckDBPyConnection, messages: Iterable[SourceMessage]) -> Iterator[int]:
    """Create the staged tables and fill them, yielding the number of rows so far after each batch.

    The names are there once all rows have been drawn.
    """
    columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    connection.execute(f"CREATE TABLE {STAGED} ({columns})")
    batches = _Batches(Letters(asking(connection)))
    rows = iter(messages)
    done = 0
    with closing(connection.cursor()) as cursor, ThreadPoolExecutor(1) as other:
        while batch := list(islice(rows, _BATCH_ROWS)):
            inserted: Future[None] = other.submit(lambda: None)
            for start in range(0, len(batch), _PART_ROWS):
                part = batches.columns(batch[start : start + _PART_ROWS], done + start)
                inserted.result()
                inserted = other.submit(_insert, cursor, part)
            inserted.result()
            done += len(batch)
            yield done
    batches.write_names(connection)


def _insert(cursor: duckdb.DuckDBPyConnection, part: Columns) -> None:
    # Each of its own: until one ends, the database holds on to all that it has read.
    cursor.register("part", part)
    cursor.execute(f"INSERT INTO {STAGED} BY NAME SELECT * FROM part")
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
        self._conversations = _Names(lambda pair: (identifier(pair[0]), clean(pair[1])))
        self._authors = _Names(lambda pair: (clean(pair[0]), clean(pair[1])))
        self._values = {name: _Names(_fit_or_none if name in _NULLABLE else _fit) for name in VALUES}

    def write_names(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the tables of names."""
        self._conversations.write(connection, CONVERSATIONS, ("id", "name"))
        self._authors.write(connection, AUTHORS, ("id", "name"))
        for name, values in self._values.items():
            values.write(connection, VALUES[name], ("id",))

    def columns(self, batch: Sequence[SourceMessage], first: int) -> Columns:
        """The columns of a batch, of which so many rows went before."""
        size = len(batch)
        given = {name: list(map(attrgetter(name), batch)) for name in _FIELDS}
        conversations = self._conversations.numbers(
            list(zip(given["conversation_id"], given["conversation"], strict=True))
        )
        prefixes = list(map(self._conversations.firsts.__getitem__, conversations))
        message_ids = list(map(message_id_of, prefixes, identifiers(given["native_id"])))
        thread_ids = _thread_ids(prefixes, given["native_id"], given["thread_native_id"])
        authors = self._authors.numbers(list(zip(given["author_id"], given["author"], strict=True)))
        topic, body = self._field(given["topic"]), self._field(given["body"])
        words = topic.words + body.words
        hashed = list(map(b"%b\0%b".__mod__, zip(_split(topic.folded, size), _split(body.folded, size), strict=True)))
        for at in np.flatnonzero(words < COPIED_WORDS).tolist():
            hashed[at] = of_its_author(hashed[at], message_ids[at], self._authors.firsts[authors[at]])
        ids = raw_of(message_ids)
        return Columns({
            "sequence": numbers(np.arange(first, first + size)),
            "message_key": numbers(_keys(_split(ids, size))),
            "copy_key": numbers(_keys(hashed)),
            "conversation": numbers(np.array(conversations, dtype=np.uint32)),
            "author": numbers(np.array(authors, dtype=np.uint32)),
            **{name: _value(of.numbers(given[name])) for name, of in self._values.items()},
            "sent_at": numbers(np.array(given["sent_at"], dtype=np.int64)),
            "edited_at": _instants(given["edited_at"]),
            "words": numbers(words),
            "scripts": numbers(topic.scripts | body.scripts),
            "message_id": texts(ids, size),
            "thread_id": _some(thread_ids),
            "topic": texts(topic.raw, size),
            "body": texts(body.raw, size),
            "link": _some(given["link"]),
            "attributes": _some(given["attributes"]),
            "folded_topic": topic.apart,
            "folded_body": body.apart,
        })  # fmt: skip

    def _field(self, given: Sequence[str]) -> "_Field":
        size = len(given)
        stored, raw = cleaned(given)
        folded, apart = _folded(stored, raw)
        return _Field(raw, folded, apart, word_counts(folded, size, self._letters), self._letters.scripts(raw, size))


@dataclass(frozen=True, slots=True)
class _Field:
    """Topics or bodies: in bytes, cleaned; folded, in bytes; folded, where they are not ASCII; words; scripts."""

    raw: Bytes
    folded: Bytes
    apart: Column
    words: NDArray[np.uint32]
    scripts: NDArray[np.uint16]


def _fit(value: str) -> tuple[str, ...]:
    return (clean(value),)


def _fit_or_none(value: str | None) -> tuple[str, ...] | None:
    return _fit(value) if value else None


def _thread_ids(prefixes: Sequence[str], natives: Sequence[str], threads: Sequence[str | None]) -> list[str | None]:
    """The ids of threads, `None` where it is the message's own."""
    replies = [at for at, thread in enumerate(threads) if thread and thread != natives[at]]
    found: list[str | None] = [None] * len(threads)
    for at, thread in zip(replies, identifiers([threads[at] or "" for at in replies]), strict=True):
        found[at] = message_id_of(prefixes[at], thread)
    return found


def _folded(given: Sequence[str], raw: Bytes) -> tuple[Bytes, Column]:
    """All texts folded, and a column of those that are not ASCII, null in the place of others."""
    size = len(given)
    others = [at for at, plain in enumerate(map(str.isascii, given)) if not plain]
    valid = np.zeros(size, dtype=np.bool_)
    valid[others] = True
    each, apart = list(given), [""] * size
    for at in others:
        each[at] = apart[at] = fold(given[at])
    # Lower case is all that folding does to ASCII, and bytes in lower case leave all others as they are.
    joined = (raw_of(each) if others else raw).tobytes().lower()
    return np.frombuffer(joined, dtype=np.uint8), texts(raw_of(apart), size, valid)


def _split(raw: Bytes, count: int) -> list[bytes]:
    return raw.tobytes().split(b"\0", count)[:-1]


def _some(values: Sequence[str | None]) -> Column:
    """Texts of which many are missing; an empty one counts as such."""
    _, raw = cleaned([value or "" for value in values])
    return texts(raw, len(values), np.fromiter(map(bool, values), dtype=np.bool_, count=len(values)))


def _value(found: Sequence[int]) -> Column:
    values = np.array(found, dtype=np.int32)
    return numbers(values, values != _NO_VALUE)


def _instants(values: Sequence[int | None]) -> Column:
    valid = np.array([value is not None for value in values], dtype=np.bool_)
    return numbers(np.array([value or 0 for value in values], dtype=np.int64), valid)


def _keys(hashed: Iterable[bytes]) -> NDArray[np.uint64]:
    """For each the first 8 bytes of its BLAKE2b, big endian, as `message_key_of` makes them."""
    digests = b"".join([blake2b(each, digest_size=8).digest() for each in hashed])
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64)
