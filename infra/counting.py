"""Ports that count what passes through them, each around an adapter of the same port.

Decides what is counted and under which name; counts go to the tally of the call (`engine.tally`). Must never know
what an adapter is made of, and never count what a value says: only how often, how many and how long.

    s3_requests, dynamodb_requests    requests sent, tries included: botocore's, and DuckDB's own over HTTP
    bytes_scanned                     bytes DuckDB read from files or from the object store
    rows_scanned                      rows that statements gave, and rows a scan looked at (engine.hits)
    statements                        statements run
    batch_conflicts                   batches that another call claimed first
    snapshot_requests, seen_reads, seen_claims, export_requests    calls of each port
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, cast
from weakref import WeakSet

import duckdb

from engine.ports import Batch, Export, ExportSink, ExportStore, SeenStore, SnapshotStore
from engine.snapshot.format import FileEntry
from engine.snapshot.statements import Statements, Tables
from engine.tally import add

__all__ = [
    "CountingExports",
    "CountingSeen",
    "CountingSnapshots",
    "CountingStatements",
    "count_request",
]

_SENT = re.compile(r"^\{'request': \{'type': '?([A-Z]+)")
_GIVEN = re.compile(r"'response': .*Content-Length='?(\d+)", re.IGNORECASE | re.DOTALL)
_READ = re.compile(r'"op":"READ","bytes":"(\d+)"')


def count_request(service: str) -> None:
    """One request of boto3's to a service, `s3` or `dynamodb`, as it is sent."""
    add(f"{service}_requests")


class CountingSnapshots:
    """A `SnapshotStore` that counts its calls, and what DuckDB reads through the connections it prepares.

    `log` is the log of DuckDB's that tells: `HTTP` over an object store, `FileSystem` in a folder.
    """

    def __init__(self, inner: SnapshotStore, log: Literal["HTTP", "FileSystem"]) -> None:
        self._inner = inner
        self._log = log
        self._prepared: WeakSet[duckdb.DuckDBPyConnection] = WeakSet()

    @property
    def location(self) -> str:
        """As the adapter's; likewise all below."""
        return self._inner.location

    def current(self) -> str | None:
        """Counted."""
        add("snapshot_requests")
        return self._inner.current()

    def pinned(self) -> bool:
        """Counted."""
        add("snapshot_requests")
        return self._inner.pinned()

    def read(self, snapshot_id: str, name: str) -> bytes:
        """Counted, with its bytes."""
        add("snapshot_requests")
        found = self._inner.read(snapshot_id, name)
        add("bytes_scanned", len(found))
        return found

    def prefix(self, snapshot_id: str) -> str:
        """Costs nothing."""
        return self._inner.prefix(snapshot_id)

    def sizes(self, snapshot_id: str) -> dict[str, int]:
        """Counted."""
        add("snapshot_requests")
        return self._inner.sizes(snapshot_id)

    def altered(self, snapshot_id: str, files: Sequence[FileEntry]) -> list[str]:
        """Counted."""
        add("snapshot_requests")
        return self._inner.altered(snapshot_id, files)

    def sha256(self, snapshot_id: str, name: str) -> str:
        """Counted."""
        add("snapshot_requests")
        return self._inner.sha256(snapshot_id, name)

    def prepare(self, connection: object) -> None:
        """As the adapter does, and with DuckDB's own log of what it reads, in memory."""
        self._inner.prepare(connection)
        reader = cast("duckdb.DuckDBPyConnection", connection)
        # In memory, where `collect` empties it. It may hold signatures of requests: only numbers leave it.
        reader.execute(f"CALL enable_logging('{self._log}')")
        self._prepared.add(reader)

    def renew(self, connection: object) -> None:
        """As the adapter does."""
        self._inner.renew(connection)

    def publish(self, snapshot_id: str, folder: Path, expected: str | None) -> None:
        """Counted."""
        add("snapshot_requests")
        self._inner.publish(snapshot_id, folder, expected)

    def point(self, snapshot_id: str, expected: str | None, *, pinned: bool = False) -> None:
        """Counted."""
        add("snapshot_requests")
        self._inner.point(snapshot_id, expected, pinned=pinned)

    def snapshots(self) -> list[str]:
        """Counted."""
        add("snapshot_requests")
        return self._inner.snapshots()

    def delete(self, snapshot_id: str) -> None:
        """Counted."""
        add("snapshot_requests")
        self._inner.delete(snapshot_id)

    def collect(self) -> None:
        """Count what DuckDB has read since it was last asked. Of calls at the same time the first takes it all."""
        for connection in list(self._prepared):
            try:
                with connection.cursor() as cursor:
                    told = cursor.execute("SELECT message FROM duckdb_logs WHERE type = ?", [self._log]).fetchall()
                    cursor.execute("CALL truncate_duckdb_logs()")
            except duckdb.Error:
                continue  # closed meanwhile: what cannot be counted must not fail the call that was answered
            for (message,) in told:
                self._count(message)

    def _count(self, message: str) -> None:
        if self._log == "FileSystem":
            if read := _READ.search(message):
                add("bytes_scanned", int(read[1]))
            return
        if sent := _SENT.match(message):
            add("s3_requests")
            if sent[1] == "GET" and (given := _GIVEN.search(message)):
                add("bytes_scanned", int(given[1]))


class CountingStatements:
    """`Statements` that count statements and the rows they give."""

    def __init__(self, inner: Statements) -> None:
        self._inner = inner

    def rows(self, sql: str, params: Sequence[object] = (), **tables: Tables) -> list[tuple[Any, ...]]:
        """Counted."""
        add("statements")
        found = self._inner.rows(sql, params, **tables)
        add("rows_scanned", len(found))
        return found

    def arrays(self, sql: str, params: Sequence[object] = (), **tables: Tables) -> Tables:
        """Counted."""
        add("statements")
        found = self._inner.arrays(sql, params, **tables)
        add("rows_scanned", max((len(column) for column in found.values()), default=0))
        return found

    def stream(
        self, sql: str, params: Sequence[object] = (), *, size: int = 1_000, **tables: Tables
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Counted, as far as it is read."""
        add("statements")
        for chunk in self._inner.stream(sql, params, size=size, **tables):
            add("rows_scanned", len(chunk))
            yield chunk


class CountingSeen:
    """A `SeenStore` that counts its calls and the claims that came too late."""

    def __init__(self, inner: SeenStore) -> None:
        self._inner = inner

    def batches(self, session: str) -> list[Batch]:
        """Counted."""
        add("seen_reads")
        return self._inner.batches(session)

    def claim(self, session: str, batch: Batch, expires_at: int) -> bool:
        """Counted; a number that was taken is a conflict."""
        add("seen_claims")
        won = self._inner.claim(session, batch, expires_at)
        if not won:
            add("batch_conflicts")
        return won


class CountingExports:
    """An `ExportStore` that counts its calls and the bytes written."""

    def __init__(self, inner: ExportStore) -> None:
        self._inner = inner

    def put(self, export: Export) -> None:
        """Counted."""
        add("export_requests")
        self._inner.put(export)

    def get(self, export_id: str) -> Export | None:
        """Counted."""
        add("export_requests")
        return self._inner.get(export_id)

    def sink(self, export: Export) -> ExportSink:
        """Counted, and every byte written to it."""
        add("export_requests")
        return _CountingSink(self._inner.sink(export))

    def link(self, export: Export) -> str:
        """Costs nothing."""
        return self._inner.link(export)

    def revoke(self, export_id: str) -> None:
        """Counted."""
        add("export_requests")
        self._inner.revoke(export_id)

    def expired(self, now: int) -> Sequence[str]:
        """Counted."""
        add("export_requests")
        return self._inner.expired(now)


class _CountingSink:
    def __init__(self, inner: ExportSink) -> None:
        self._inner = inner

    def write(self, data: bytes) -> None:
        self._inner.write(data)
        add("export_bytes", len(data))

    def commit(self) -> None:
        self._inner.commit()

    def abort(self) -> None:
        self._inner.abort()
