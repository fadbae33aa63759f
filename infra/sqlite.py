"""Seen-sets in one SQLite file, for a laptop or a single server.

Decides what a claim is here: one INSERT that only the first of two processes can make. The handle of a
session is a secret, so only its SHA-256 is stored. Must never know what the keys of a batch mean.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from engine.errors import Unavailable
from engine.ports import Batch
from infra.sqlite_file import opened

__all__ = ["SqliteSeen"]

_TABLE = """
CREATE TABLE IF NOT EXISTS batches (
    session BLOB NOT NULL, number INTEGER NOT NULL, parent INTEGER NOT NULL, caller_id TEXT NOT NULL,
    digest TEXT NOT NULL, made_at INTEGER NOT NULL, started_at INTEGER NOT NULL,
    shown BLOB NOT NULL, around BLOB NOT NULL, groups BLOB NOT NULL, expires_at INTEGER NOT NULL,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID
"""
_INDEX = "CREATE INDEX IF NOT EXISTS batches_by_expiry ON batches (expires_at)"
_READ = """
SELECT number, parent, caller_id, digest, made_at, started_at, shown, around, groups
FROM batches WHERE session = ? AND expires_at > ? ORDER BY number
"""
_CLAIM = "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_SWEEP = "DELETE FROM batches WHERE expires_at <= ?"


def _now() -> int:
    return time.time_ns() // 1_000


class SqliteSeen:
    """A `SeenStore` in the file `path`, shared by any number of threads and processes.

    Each process keeps one connection, opened by its first call; a statement waits up to `busy_seconds` for
    those of others. `clock` gives microseconds since 1970, UTC.
    """

    def __init__(self, path: Path, *, busy_seconds: float = 10.0, clock: Callable[[], int] = _now) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._pid = 0
        self._connections: list[sqlite3.Connection] = []

    def batches(self, session: str) -> list[Batch]:
        """All batches of a session that have not expired, in order of number."""
        with self._statement() as connection:
            rows = connection.execute(_READ, (_key(session), self._clock())).fetchall()
        return [Batch(*row) for row in rows]

    def claim(self, session: str, batch: Batch, expires_at: int) -> bool:
        """Write `batch` if its number is free; a session's first batch also sweeps what has expired."""
        row = (
            _key(session),
            batch.number,
            batch.parent,
            batch.caller_id,
            batch.digest,
            batch.made_at,
            batch.started_at,
            batch.shown,
            batch.around,
            batch.groups,
            expires_at,
        )
        with self._statement() as connection:
            if batch.number == 1:
                connection.execute(_SWEEP, (self._clock(),))
            return connection.execute(_CLAIM, row).rowcount == 1

    def close(self) -> None:
        """Close this process's connection; a later call opens it again."""
        with self._lock:
            if self._pid == os.getpid():
                self._connections.pop().close()
                self._pid = 0

    @contextmanager
    def _statement(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                if self._pid != os.getpid():
                    # A forked child must neither use nor close its parent's connection, so the list keeps it.
                    self._connections.append(self._open())
                    self._pid = os.getpid()
                yield self._connections[-1]
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(
                "store_unreachable",
                "the file of seen messages cannot be used",
                next_step="call again; if it stays so, move the file away: sessions start afresh",
                detail=type(error).__name__,
            ) from error

    def _open(self) -> sqlite3.Connection:
        # Sessions belong to their callers: the file is nobody else's to read.
        connection = opened(self._path, self._busy_seconds)
        try:
            # A power cut may lose the last batches, never the file: some messages are then shown once more.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_TABLE)
            connection.execute(_INDEX)
        except BaseException:
            connection.close()
            raise
        return connection


def _key(session: str) -> bytes:
    return sha256(session.encode("utf-8", "surrogatepass")).digest()
