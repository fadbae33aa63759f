"""Payments in one SQLite file, for a laptop or a single server.

Decides that one statement is one change, so that of two processes one is told no. Must never know what a payment
bought: ids and digests come here, no signature.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, replace
from pathlib import Path

from engine.errors import Unavailable
from engine.payments import Payment
from infra.sqlite_file import made_private

__all__ = ["SqlitePayments"]

_TABLE = """
CREATE TABLE IF NOT EXISTS payments (
    payment_id TEXT NOT NULL PRIMARY KEY, version TEXT NOT NULL, state TEXT NOT NULL, payer TEXT NOT NULL,
    call TEXT NOT NULL, proof TEXT NOT NULL, lease_until INTEGER NOT NULL, expires_at INTEGER NOT NULL,
    batch INTEGER NOT NULL, amount TEXT NOT NULL
) STRICT, WITHOUT ROWID
"""
_INDEX = "CREATE INDEX IF NOT EXISTS payments_by_expiry ON payments (expires_at)"
_COLUMNS = "payment_id, version, state, payer, call, proof, lease_until, expires_at, batch, amount"
_GET = f"SELECT {_COLUMNS} FROM payments WHERE payment_id = ? AND expires_at > ?"
_ADD = f"INSERT INTO payments ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_CHANGE = """
UPDATE payments SET version = ?2, state = ?3, payer = ?4, call = ?5, proof = ?6, lease_until = ?7, expires_at = ?8,
    batch = ?9, amount = ?10 WHERE payment_id = ?1 AND version = ?11
"""
_REMOVE = "DELETE FROM payments WHERE payment_id = ? AND version = ?"
_SWEEP = "DELETE FROM payments WHERE expires_at <= ?"


def _now() -> int:
    return time.time_ns() // 1_000


class SqlitePayments:
    """A `PaymentStore` in the file `path`, shared by any number of threads and processes.

    Each call opens the file anew: beside asking for money that takes no time. A statement waits up to `busy_seconds`
    for those of others. `clock` gives microseconds since 1970, UTC.
    """

    def __init__(self, path: Path, *, busy_seconds: float = 10.0, clock: Callable[[], int] = _now) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._clock = clock

    def get(self, payment_id: str) -> Payment | None:
        """A payment as it is now, `None` when there is none or its time is over."""
        with self._connected() as connection:
            row = connection.execute(_GET, (payment_id, self._clock())).fetchone()
        return replace(Payment(*row[:-1]), amount=int(row[-1])) if row else None

    def put(self, payment: Payment, instead_of: str | None) -> bool:
        """Write `payment` in place of a version; a new one also sweeps what has expired."""
        # An amount may be larger than an integer of SQLite.
        row = (*astuple(payment)[:-1], str(payment.amount))
        with self._connected() as connection:
            if instead_of is not None:
                return connection.execute(_CHANGE, (*row, instead_of)).rowcount == 1
            connection.execute(_SWEEP, (self._clock(),))
            return connection.execute(_ADD, row).rowcount == 1

    def remove(self, payment: Payment) -> bool:
        """Forget a payment if it is still at this version."""
        with self._connected() as connection:
            return connection.execute(_REMOVE, (payment.payment_id, payment.version)).rowcount == 1

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            # Who may write here could have one payment buy two answers: the file is nobody else's.
            made_private(self._path)
            with closing(sqlite3.connect(self._path, timeout=self._busy_seconds, isolation_level=None)) as connection:
                connection.execute(_TABLE)
                connection.execute(_INDEX)
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(
                "store_unreachable",
                "the file of payments cannot be used",
                next_step="check that its folder may be written",
                detail=type(error).__name__,
            ) from error
