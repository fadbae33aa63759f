"""SQLite FTS5 with the trigram tokenizer, as strong as we could make it, giving the answers our tools give.

Decides the peer's tables and statements. It gets the folded texts, so that it finds what we find, and only messages
that a search looks at, so that it needs no condition for that. Of the ways tried to compute a count (grouping in SQL
over a temporary table; one grouping by all dimensions at once; fetching the hits' small integers and counting them
with NumPy) the last is the fastest and is used. It computes less than our tools do: no words matched inside, no months
of all messages, no matches among activity, no session. Must never know this engine.
"""

import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.model import SourceMessage
from engine.text import fold
from engine.times import iso, to_date
from handler.bench.answers import Answered
from handler.bench.corpora import Built, Synth
from handler.bench.processes import peak_bytes
from handler.bench.queries import StandardQuery, searched
from handler.wire import compact

__all__ = ["FILE", "Fts5", "build", "fill"]

FILE = "messages.sqlite"

_TABLES = """
    CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, body TEXT);
    CREATE TABLE folded (id INTEGER PRIMARY KEY, folded TEXT);
    CREATE TABLE narrow (id INTEGER PRIMARY KEY, sent_at INTEGER, thread INTEGER, conversation INTEGER,
                         author INTEGER, from_role INTEGER, kind INTEGER, month INTEGER);
    CREATE TABLE names (dimension TEXT, code INTEGER, name TEXT);
"""
_INDEX = """
    CREATE VIRTUAL TABLE found USING fts5(folded, content='folded', content_rowid='id',
                                          tokenize='trigram case_sensitive 1');
    INSERT INTO found(found) VALUES ('rebuild');
    INSERT INTO found(found) VALUES ('optimize');
"""
_FACETS = ("conversation", "author", "from_role", "kind")
_TOP = {"conversation": 10, "author": 8, "from_role": 8, "kind": 8}
_COUNTED = "sent_at, thread, conversation, author"
_ALL = f"{_COUNTED}, from_role, kind, month"
_TRIGRAM = 3
_BATCH = 20_000


def build(folder: Path, messages: int, seed: int) -> Built:
    """Fill and index a database in `folder`; for a process of its own."""
    folder.mkdir()
    source = Synth(messages, seed)
    start = time.perf_counter()
    rows, text_bytes, index_bytes = fill(folder / FILE, source)
    seconds = time.perf_counter() - start - source.drawing_seconds
    size = (folder / FILE).stat().st_size
    return Built(seconds, peak_bytes(), rows, text_bytes, index_bytes, size)


def fill(file: Path, messages: Iterable[SourceMessage]) -> tuple[int, int, int]:
    """Write and index the messages that a search looks at: their number, bytes of text, bytes of the index."""
    connection = sqlite3.connect(file)
    # Nothing survives a crash, nothing is written twice: the fastest a build can be.
    connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_TABLES}")
    codes: dict[str, dict[str, int]] = defaultdict(dict)
    rows = text_bytes = 0
    numbered = enumerate(m for m in messages if searched(m))
    while batch := list(islice(numbered, _BATCH)):
        connection.executemany("INSERT INTO messages VALUES (?, ?, ?)", [(n, m.message_id, m.body) for n, m in batch])
        connection.executemany("INSERT INTO folded VALUES (?, ?)", [(n, fold(m.body)) for n, m in batch])
        connection.executemany("INSERT INTO narrow VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _narrow(batch, codes))
        rows += len(batch)
        text_bytes += sum(len(m.body.encode()) for _, m in batch)
    names = [(dimension, code, name) for dimension, of in codes.items() for name, code in of.items()]
    connection.executemany("INSERT INTO names VALUES (?, ?, ?)", names)
    connection.commit()
    plain = _used_bytes(connection)
    connection.executescript(_INDEX)
    index_bytes = _used_bytes(connection) - plain
    connection.close()
    return rows, text_bytes, index_bytes


def _narrow(batch: list[tuple[int, SourceMessage]], codes: dict[str, dict[str, int]]) -> Iterator[tuple[int, ...]]:
    def code(dimension: str, value: str) -> int:
        of = codes[dimension]
        return of.setdefault(value, len(of))

    for n, m in batch:
        yield (
            n,
            m.sent_at,
            code("thread", m.thread_id),
            code("conversation", m.conversation_id),
            code("author", m.author_id),
            code("from_role", m.from_role),
            code("kind", m.kind),
            code("month", to_date(m.sent_at)[:7]),
        )


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchall()[0][0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


class Fts5:
    """One system of the benchmark, with a generous cache and its file mapped into memory."""

    name = "sqlite_fts5"

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / FILE)
        self._connection.executescript(
            "PRAGMA query_only = ON; PRAGMA cache_size = -262144; PRAGMA mmap_size = 17179869184;"
            " PRAGMA temp_store = MEMORY;"
        )
        self._names: dict[str, dict[int, str]] = defaultdict(dict)
        for dimension, code, name in self._connection.execute("SELECT * FROM names WHERE dimension <> 'thread'"):
            self._names[dimension][code] = name

    def count(self, query: StandardQuery) -> bytes:
        """What `count_messages` answers, as JSON."""
        hits = self._hits(query, _ALL)
        return compact({**_found(hits), "over_time": self._months(hits), "top": self._top(hits)})

    def search(self, query: StandardQuery) -> bytes:
        """The counts and the texts of the top eight by bm25; the newest eight where there is no index to rank by."""
        found = _found(self._hits(query, _COUNTED))
        source, params, ranked = self._source(query)
        order = "bm25(found)" if ranked else "n.sent_at DESC"
        rows = self._connection.execute(
            f"SELECT m.message_id, n.sent_at, n.conversation, n.author, m.body {source}"
            f" ORDER BY {order} LIMIT 8".replace("JOIN narrow", "JOIN messages m ON m.id = f.rowid JOIN narrow"),
            params,
        ).fetchall()
        messages = [
            {
                "id": message_id,
                "sent_at": iso(sent_at),
                "conversation": self._names["conversation"][conversation],
                "author": self._names["author"][author],
                "text": body,
            }
            for message_id, sent_at, conversation, author, body in rows
        ]
        return compact({**found, "messages": messages})

    def counted(self, query: StandardQuery) -> Answered:
        """What `count` says, in the form to compare."""
        hits = self._hits(query, _ALL)
        found: dict[str, Any] = _found(hits)["found"]
        facets = {
            name: sorted(np.unique(hits[:, 2 + at], return_counts=True)[1].tolist(), reverse=True)
            for at, name in enumerate(_FACETS)
        }
        return Answered(**found, months=dict(self._months(hits)), facets=facets)

    def found(self, query: StandardQuery) -> Answered:
        """What `search` says, in the form to compare."""
        return Answered(**json.loads(self.search(query))["found"])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _hits(self, query: StandardQuery, columns: str) -> NDArray[np.int64]:
        source, params, _ = self._source(query)
        rows = self._connection.execute(f"SELECT {columns} {source}", params).fetchall()
        return np.array(rows, dtype=np.int64).reshape(len(rows), columns.count(",") + 1)

    def _source(self, query: StandardQuery) -> tuple[str, list[Any], bool]:
        """FROM and WHERE of a query, its parameters, and whether the index answers it."""
        terms = (*query.required, *query.either, *query.excluded)
        indexed = all(len(term) >= _TRIGRAM for term in terms)
        conditions, params = [], []
        if indexed:
            conditions.append("found MATCH ?")
            params.append(_match(query))
        else:
            # Only single terms are asked of two letters.
            conditions += ["f.folded LIKE ?" for _ in terms]
            params += [f"%{term}%" for term in terms]
        if query.from_role is not None:
            conditions.append("n.from_role = (SELECT code FROM names WHERE dimension = 'from_role' AND name = ?)")
            params.append(query.from_role)
        if query.months is not None:
            conditions.append(
                "n.sent_at >= unixepoch(? || '-01') * 1000000 AND n.sent_at < unixepoch(? || '-01') * 1000000"
            )
            params += query.months
        table = "found f" if indexed else "folded f"
        return f"FROM {table} JOIN narrow n ON n.id = f.rowid WHERE {' AND '.join(conditions)}", params, indexed

    def _months(self, hits: NDArray[np.int64]) -> list[tuple[str, int]]:
        names = self._names["month"]
        codes, counts = np.unique(hits[:, 6], return_counts=True)
        return sorted((names[code], n) for code, n in zip(codes.tolist(), counts.tolist(), strict=True))

    def _top(self, hits: NDArray[np.int64]) -> dict[str, dict[str, int]]:
        top = {}
        for at, name in enumerate(_FACETS):
            counts = np.bincount(hits[:, 2 + at])
            order = np.argsort(-counts, kind="stable")[: _TOP[name]]
            names = self._names[name]
            top[name] = {names[code]: int(counts[code]) for code in order.tolist() if counts[code]}
        return top


def _match(query: StandardQuery) -> str:
    parts = [_quoted(term) for term in query.required]
    if query.either:
        parts.append(f"({' OR '.join(_quoted(term) for term in query.either)})")
    return " AND ".join(parts) + "".join(f" NOT {_quoted(term)}" for term in query.excluded)


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _found(hits: NDArray[np.int64]) -> dict[str, Any]:
    found: dict[str, Any] = {"messages": len(hits)}
    for name, at in (("threads", 1), ("conversations", 2), ("authors", 3)):
        found[name] = int(np.count_nonzero(np.bincount(hits[:, at]))) if len(hits) else 0
    if len(hits):
        found |= {"first": iso(int(hits[:, 0].min())), "last": iso(int(hits[:, 0].max()))}
    return {"found": found}
