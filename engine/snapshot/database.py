"""The DuckDB connections: how they are set up, locked down, bounded in memory and time.

Every statement of a reader goes through `Database.rows` or `Database.arrays`; values are always parameters. What
is read is decided by the caller from a snapshot's own manifest, never from input.
"""

import errno
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from engine.deadline import check_deadline, seconds_left
from engine.errors import BrokenSnapshot, EngineError, Unavailable
from engine.snapshot.scratch import scratch
from engine.snapshot.statements import Tables

__all__ = ["Database", "DatabaseSettings", "asking", "connect", "failures_told", "uncompressed"]

_FAULTS_OF_OURS = (duckdb.ParserException, duckdb.SyntaxException, duckdb.CatalogException)
"""A statement that is wrong, whatever the files hold."""

_INTERRUPT_SECONDS = 0.05

_DISK_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """Bounds of one DuckDB instance; 0 threads are one per processor.

    It may spill below `temp_folder`, each instance into a folder of its own; it never uses a home folder.
    """

    memory: str = "1GB"
    threads: int = 0
    temp_folder: Path | None = None
    temp_size: str = "4GB"


def connect(
    settings: DatabaseSettings,
    readable: Sequence[str],
    prepare: Callable[[duckdb.DuckDBPyConnection], None] | None = None,
    file: str = ":memory:",
) -> duckdb.DuckDBPyConnection:
    """A connection that reads and writes below `readable` only, and whose settings nothing can change.

    `prepare` runs before the lock: it loads an extension or makes a secret.
    """
    temp = str(scratch(settings.temp_folder) / f"spill-{secrets.token_hex(4)}") if settings.temp_folder else ""
    connection = duckdb.connect(
        file,
        config={
            "memory_limit": settings.memory,
            **({"threads": settings.threads} if settings.threads else {}),
            "temp_directory": temp,
            "max_temp_directory_size": settings.temp_size,
            "home_directory": temp or "/nonexistent",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
            "preserve_insertion_order": True,
            "enable_object_cache": True,
            # Columns of Python strings are text; looking into them costs a failed import for each value.
            "pandas_analyze_sample": 0,
            "validate_external_file_cache": "NO_VALIDATION",
        },
    )
    if prepare is not None:
        prepare(connection)
    allowed = [*readable, *([temp] if temp else [])]
    # In a process that was spawned it is on, and goes to standard output, where answers and the protocol are.
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET allowed_directories = ?", [allowed])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def uncompressed(connection: duckdb.DuckDBPyConnection) -> None:
    """For `prepare`: what is written once, read twice and deleted costs more to compress than to write."""
    connection.execute("SET force_compression = 'uncompressed'")


def asking(connection: duckdb.DuckDBPyConnection) -> Callable[[str, Tables], Tables]:
    """A way to run statements over a table of arrays, called `given`, one at a time, beside what `connection` runs."""
    cursor = connection.cursor()

    def ask(sql: str, given: Tables) -> Tables:
        cursor.register("given", given)
        found = cursor.execute(sql).fetchnumpy()
        cursor.unregister("given")
        return {name: np.ma.getdata(column) for name, column in found.items()}

    return ask


class Database:
    """A locked connection shared by threads: each statement runs on a cursor of its own, within `seconds` and within
    what is left of its call.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds

    def rows(self, sql: str, params: Sequence[object] = (), **tables: Tables) -> list[tuple[Any, ...]]:
        """All rows of a statement. `tables` are arrays it may name as tables.

        Raises:
            Unavailable: `too_slow` past the time limit, `out_of_memory`, `store_unreachable`.
            BrokenSnapshot: `snapshot_broken` when a file is not what it should be.
        """
        with self._cursor(tables) as cursor:
            return cursor.execute(sql, params).fetchall()

    def arrays(self, sql: str, params: Sequence[object] = (), **tables: Tables) -> Tables:
        """All rows of a statement as one array per column; raises as `rows`."""
        with self._cursor(tables) as cursor:
            columns = cursor.execute(sql, params).fetchnumpy()
        return {name: np.ma.getdata(column) for name, column in columns.items()}

    def stream(
        self, sql: str, params: Sequence[object] = (), *, size: int = 1_000, **tables: Tables
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Rows of a statement in lists of `size`, with no time limit of its own; raises as `rows`."""
        with self._cursor(tables, limited=False) as cursor:
            cursor.execute(sql, params)
            while chunk := cursor.fetchmany(size):
                yield chunk

    def close(self) -> None:
        """Close the connection; running statements fail."""
        self._connection.close()

    @contextmanager
    def _cursor(self, tables: dict[str, Tables], *, limited: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
        check_deadline()
        cursor = self._connection.cursor()
        ended = threading.Event()
        timer = threading.Timer(min(self._seconds, seconds_left()), _interrupt, (cursor, ended))
        timer.daemon = True
        try:
            for name, columns in tables.items():
                cursor.register(name, columns)
            if limited:
                timer.start()
            with failures_told("narrow it by a filter"):
                yield cursor
        except duckdb.InterruptException as error:
            check_deadline()
            raise Unavailable(
                "too_slow",
                f"the search was stopped after {self._seconds:g} seconds",
                next_step="narrow it by a filter or a rarer word",
            ) from error
        finally:
            ended.set()
            timer.cancel()
            cursor.close()


def _interrupt(cursor: duckdb.DuckDBPyConnection, ended: threading.Event) -> None:
    """Again and again: an interrupt that comes before its statement has begun to run is lost."""
    while not ended.is_set():
        with suppress(duckdb.Error):
            cursor.interrupt()
        ended.wait(_INTERRUPT_SECONDS)


@contextmanager
def failures_told(next_step: str) -> Iterator[None]:
    """Turns what DuckDB and a full disk raise into errors of the engine; `next_step` is the way out of `out_of_memory`.

    An interrupted statement goes through: only who set its time knows what it means.
    """
    try:
        yield
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        known = _told(error, next_step)
        if known is None:
            raise
        raise known from error
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        raise _disk_full(next_step, type(error).__name__) from error


def _told(error: duckdb.Error, next_step: str) -> EngineError | None:
    kind, text = type(error).__name__, str(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        return Unavailable("out_of_memory", "this needs more memory than it may use", next_step=next_step, detail=kind)
    if any(os.strerror(code) in text for code in _DISK_FULL):
        return _disk_full(next_step, kind)
    # What ends a connection early is an IOException as a damaged file is; only its words tell them apart.
    if isinstance(error, duckdb.HTTPException | duckdb.ConnectionException) or " error for HTTP " in text:
        return Unavailable("store_unreachable", "the store did not answer", next_step="call again", detail=kind)
    if isinstance(error, _FAULTS_OF_OURS):
        return None
    # Damage shows in whatever part of the reader meets it first, so every other failure is one of the files.
    return BrokenSnapshot(
        "snapshot_broken",
        "a file of the snapshot cannot be read",
        next_step="run verify, or roll back to an older snapshot",
        detail=kind,
    )


def _disk_full(next_step: str, kind: str) -> Unavailable:
    return Unavailable(
        "out_of_memory",
        "this needs more memory than it may use, and the temporary folder is full",
        next_step=next_step,
        detail=kind,
    )
