"""Files of SQLite: whose they are, and how one is opened that threads and processes share.

Decides that a file is its owner's alone from its first byte on, and that readers do not wait for writers (WAL). Must
never know a table, nor how long what is written must last.
"""

import os
import sqlite3
import time
from pathlib import Path

__all__ = ["made_private", "opened"]


def made_private(path: Path) -> None:
    """Make the file, and its folder, where they are not there yet: nobody else reads or writes it.

    Raises:
        OSError: they cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def opened(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """A connection to a private file in WAL mode, for any thread; a statement waits so long for those of others.

    Raises:
        OSError, sqlite3.Error: the file cannot be made or used.
    """
    made_private(path)
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        _to_wal(connection, busy_seconds)
    except BaseException:
        connection.close()
        raise
    return connection


def _to_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    # The change to WAL does not wait for others as statements do: it fails at once, so it is tried again.
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
