"""API keys in one SQLite file, for a laptop or a single server.

Decides that one statement is one change, so that two processes never lose one another's. Must never know a secret:
only digests come here.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from engine.errors import Unavailable
from engine.ports import Key
from infra.sqlite_file import made_private

__all__ = ["SqliteKeys"]

_TABLE = """
CREATE TABLE IF NOT EXISTS keys (
    key_id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, digest BLOB NOT NULL, created_at INTEGER NOT NULL,
    expires_at INTEGER, revoked_at INTEGER, used_at INTEGER
) STRICT, WITHOUT ROWID
"""
_COLUMNS = "key_id, name, digest, created_at, expires_at, revoked_at, used_at"
_ADD = f"INSERT INTO keys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_GET = f"SELECT {_COLUMNS} FROM keys WHERE key_id = ?"
_ALL = f"SELECT {_COLUMNS} FROM keys ORDER BY created_at, key_id"
_REVOKE = "UPDATE keys SET revoked_at = min(coalesce(revoked_at, ?1), ?1) WHERE key_id = ?2"
_USED = "UPDATE keys SET used_at = max(coalesce(used_at, ?1), ?1) WHERE key_id = ?2"


class SqliteKeys:
    """A `KeyStore` in the file `path`, shared by any number of threads and processes.

    Each call opens the file anew: keys are read once in a while, and a connection is nobody's to share. A statement
    waits up to `busy_seconds` for those of others.
    """

    def __init__(self, path: Path, *, busy_seconds: float = 10.0) -> None:
        self._path = path
        self._busy_seconds = busy_seconds

    def add(self, key: Key) -> bool:
        """Keep a new key; false when its id is taken."""
        row = (key.key_id, key.name, key.digest, key.created_at, key.expires_at, key.revoked_at, key.used_at)
        with self._connected() as connection:
            return connection.execute(_ADD, row).rowcount == 1

    def get(self, key_id: str) -> Key | None:
        """A key as it is now, `None` when there is none."""
        with self._connected() as connection:
            row = connection.execute(_GET, (key_id,)).fetchone()
        return Key(*row) if row else None

    def all_keys(self) -> list[Key]:
        """Every key, oldest first."""
        with self._connected() as connection:
            return [Key(*row) for row in connection.execute(_ALL)]

    def revoke(self, key_id: str, at: int) -> bool:
        """Have a key open nothing from `at` on."""
        with self._connected() as connection:
            return connection.execute(_REVOKE, (at, key_id)).rowcount == 1

    def used(self, key_id: str, at: int) -> None:
        """Note a use."""
        with self._connected() as connection:
            connection.execute(_USED, (at, key_id))

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            # Who may write here decides who may ask: the file is nobody else's.
            made_private(self._path)
            with closing(sqlite3.connect(self._path, timeout=self._busy_seconds, isolation_level=None)) as connection:
                connection.execute(_TABLE)
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(
                "store_unreachable",
                "the file of keys cannot be used",
                next_step="check that its folder may be written",
                detail=type(error).__name__,
            ) from error
