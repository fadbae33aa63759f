"""Usage, months and credit in one SQLite file, for a laptop or a single server.

Decides that each change is one transaction that holds the file's only write lock from its first statement: of two
processes one sees what the other has left. Commits are synchronous, since they are money. Must never know a price.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, fields, replace
from pathlib import Path
from typing import Any

from engine.errors import Unavailable
from engine.usage import (
    Account,
    Grant,
    Hold,
    Month,
    Reserved,
    Settled,
    Usage,
    began_in,
    minute_of,
    month_of,
    refund_mark,
    refund_of,
)
from infra.sqlite_file import opened

__all__ = ["SqliteUsage"]

_RECORD = ", ".join(each.name for each in fields(Usage))
_MONTH = ", ".join(each.name for each in fields(Month))
_SUMS = ", ".join(f"{each.name} INTEGER NOT NULL" for each in fields(Month)[2:])
_TABLES = f"""
CREATE TABLE IF NOT EXISTS records (
    call_id TEXT NOT NULL, caller_id TEXT NOT NULL, tool TEXT NOT NULL, began_at INTEGER NOT NULL,
    outcome TEXT NOT NULL, charge INTEGER NOT NULL, prepaid INTEGER NOT NULL, milliseconds INTEGER NOT NULL,
    rows_scanned INTEGER NOT NULL, bytes_scanned INTEGER NOT NULL, bytes_returned INTEGER NOT NULL,
    s3_requests INTEGER NOT NULL, dynamodb_requests INTEGER NOT NULL, snapshot_at INTEGER,
    month TEXT NOT NULL, keep_until INTEGER NOT NULL, PRIMARY KEY (caller_id, month, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_by_end ON records (keep_until);
CREATE TABLE IF NOT EXISTS months (
    caller_id TEXT NOT NULL, month TEXT NOT NULL, {_SUMS}, PRIMARY KEY (month, caller_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS accounts (
    caller_id TEXT NOT NULL PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS holds (
    caller_id TEXT NOT NULL, call_id TEXT NOT NULL, amount INTEGER NOT NULL, until INTEGER NOT NULL,
    PRIMARY KEY (caller_id, call_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS minutes (
    caller_id TEXT NOT NULL PRIMARY KEY, minute INTEGER NOT NULL, calls INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS marks (
    caller_id TEXT NOT NULL, mark TEXT NOT NULL, call_id TEXT NOT NULL, keep_until INTEGER NOT NULL,
    PRIMARY KEY (caller_id, mark)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS marks_by_end ON marks (keep_until);
CREATE TABLE IF NOT EXISTS grants (
    caller_id TEXT NOT NULL, reference TEXT NOT NULL, amount INTEGER NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (caller_id, reference)
) STRICT, WITHOUT ROWID;
"""
_PAY = """
INSERT INTO accounts VALUES (?, ?) ON CONFLICT DO UPDATE SET balance = balance + excluded.balance
"""
_CALLS = "SELECT calls FROM minutes WHERE caller_id = ? AND minute BETWEEN ?2 AND ?2 + 1"
_COUNT = """
INSERT INTO minutes VALUES (?, ?, 1)
ON CONFLICT DO UPDATE SET
    calls = iif(minute BETWEEN excluded.minute AND excluded.minute + 1, calls + 1, 1),
    minute = iif(minute = excluded.minute + 1, minute, excluded.minute)
"""
"""One minute is kept for each caller: a call that comes late counts in the one after its own, which has begun."""


class SqliteUsage:
    """A `UsageStore` in the file `path`, shared by any number of threads and processes.

    Each process keeps one connection, opened by its first call; a transaction waits up to `busy_seconds` for those of
    others.
    """

    def __init__(self, path: Path, *, busy_seconds: float = 10.0) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._lock = threading.Lock()
        self._pid = 0
        self._connections: list[sqlite3.Connection] = []

    def reserve(self, hold: Hold, *, per_minute: int, now: int) -> Reserved:
        """Take a place in the minute and the amount."""
        caller_id, minute = hold.caller_id, minute_of(hold.began_at)
        with self._transaction() as db:
            if _held(db, hold) is not None:
                return Reserved("held", hold)
            _give_back(db, caller_id, now)
            if per_minute and _first(db.execute(_CALLS, (caller_id, minute))) >= per_minute:
                return Reserved("too_many", hold)
            balance = _balance(db, caller_id)
            if balance < hold.amount:
                return Reserved("too_little", hold, balance)
            if per_minute:
                db.execute(_COUNT, (caller_id, minute))
            if hold.amount:
                db.execute(_PAY, (caller_id, 0))
                db.execute("UPDATE accounts SET balance = balance - ? WHERE caller_id = ?", (hold.amount, caller_id))
            db.execute("INSERT INTO holds VALUES (?, ?, ?, ?)", (caller_id, hold.call_id, hold.amount, hold.until))
            return Reserved("held", hold, balance - hold.amount)

    def raise_to(self, hold: Hold, amount: int, *, until: int, now: int) -> Reserved:
        """Hold another amount."""
        with self._transaction() as db:
            held = _held(db, hold) or 0
            db.execute("DELETE FROM holds WHERE caller_id = ? AND call_id = ?", (hold.caller_id, hold.call_id))
            _give_back(db, hold.caller_id, now)
            balance = _balance(db, hold.caller_id)
            enough = balance + held >= amount
            keep, end = (amount, until) if enough else (held, hold.until)
            if keep != held:
                db.execute(_PAY, (hold.caller_id, 0))
                db.execute(
                    "UPDATE accounts SET balance = balance - ? WHERE caller_id = ?", (keep - held, hold.caller_id)
                )
            db.execute("INSERT INTO holds VALUES (?, ?, ?, ?)", (hold.caller_id, hold.call_id, keep, end))
            made = replace(hold, amount=keep, until=end)
            return Reserved("held" if enough else "too_little", made, balance + held - keep)

    def settle(
        self, usage: Usage, *, keep_until: int, hold: Hold | None = None, mark: str = "", mark_until: int = 0
    ) -> Settled:
        """Write a record, add it to its month, take its charge and end its hold."""
        caller_id = usage.caller_id
        with self._transaction() as db:
            if _record(db, caller_id, usage.call_id) is not None:
                return "written"
            if mark and _marked(db, caller_id, mark) is not None:
                return "charged_before"
            held = (_held(db, hold) or 0) if hold is not None else 0
            taken = usage.charge if usage.prepaid else 0
            if _balance(db, caller_id) + held < taken:
                return "unpaid"
            if hold is not None:
                db.execute("DELETE FROM holds WHERE caller_id = ? AND call_id = ?", (caller_id, hold.call_id))
            if held != taken:
                db.execute(_PAY, (caller_id, 0))
                db.execute("UPDATE accounts SET balance = balance + ? WHERE caller_id = ?", (held - taken, caller_id))
            if mark:
                db.execute("INSERT INTO marks VALUES (?, ?, ?, ?)", (caller_id, mark, usage.call_id, mark_until))
            _write(db, usage, keep_until)
            return "written"

    def marked(self, caller_id: str, mark: str) -> str | None:
        """The call that left a mark."""
        with self._transaction(write=False) as db:
            return _marked(db, caller_id, mark)

    def refund(self, caller_id: str, call_id: str, *, at: int, keep_until: int) -> Usage | None:
        """Give a charge back, once."""
        mark = refund_mark(call_id)
        with self._transaction() as db:
            done = _marked(db, caller_id, mark)
            if done is not None:
                return _record(db, caller_id, done)
            charged = _record(db, caller_id, call_id)
            if charged is None or charged.charge <= 0:
                return None
            usage = refund_of(charged, at)
            if usage.prepaid:
                db.execute(_PAY, (caller_id, charged.charge))
            db.execute("INSERT INTO marks VALUES (?, ?, ?, ?)", (caller_id, mark, usage.call_id, keep_until))
            _write(db, usage, keep_until)
            return usage

    def grant(self, grant: Grant) -> bool:
        """Give credit, once for each reference."""
        with self._transaction() as db:
            key = (grant.caller_id, grant.reference)
            row = db.execute("SELECT amount FROM grants WHERE caller_id = ? AND reference = ?", key).fetchone()
            if row is not None:
                return bool(row[0] == grant.amount)
            db.execute("INSERT INTO grants VALUES (?, ?, ?, ?)", (*key, grant.amount, grant.at))
            db.execute(_PAY, (grant.caller_id, grant.amount))
            return True

    def account(self, caller_id: str, *, now: int) -> Account:
        """A caller's credit."""
        with self._transaction(write=False) as db:
            rows = db.execute("SELECT amount, until FROM holds WHERE caller_id = ?", (caller_id,)).fetchall()
            over = sum(amount for amount, until in rows if until <= now)
            return Account(caller_id, _balance(db, caller_id) + over, sum(amount for amount, _ in rows) - over)

    def month(self, caller_id: str, month: str) -> Month:
        """The sums of one caller."""
        with self._transaction(write=False) as db:
            return _month(db, caller_id, month) or Month(caller_id, month)

    def months(self, month: str) -> list[Month]:
        """The sums of every caller."""
        with self._transaction(write=False) as db:
            found = db.execute(f"SELECT {_MONTH} FROM months WHERE month = ? ORDER BY caller_id", (month,))
            return [Month(*row) for row in found]

    def records(self, caller_id: str, month: str) -> list[Usage]:
        """A caller's records of a month."""
        with self._transaction(write=False) as db:
            found = db.execute(
                f"SELECT {_RECORD} FROM records WHERE caller_id = ? AND month = ? ORDER BY call_id", (caller_id, month)
            )
            return [_usage(row) for row in found]

    def close(self) -> None:
        """Close this process's connection; a later call opens it again."""
        with self._lock:
            if self._pid == os.getpid():
                self._connections.pop().close()
                self._pid = 0

    @contextmanager
    def _transaction(self, *, write: bool = True) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                if self._pid != os.getpid():
                    # A forked child must neither use nor close its parent's connection, so the list keeps it.
                    self._connections.append(self._open())
                    self._pid = os.getpid()
                db = self._connections[-1]
                db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield db
                    db.execute("COMMIT")
                except BaseException:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                    raise
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(
                "store_unreachable",
                "the file of usage cannot be used",
                next_step="call again",
                detail=type(error).__name__,
            ) from error

    def _open(self) -> sqlite3.Connection:
        # Who may write here decides who has paid: the file is nobody else's.
        connection = opened(self._path, self._busy_seconds)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection


def _first(rows: sqlite3.Cursor) -> int:
    row = rows.fetchone()
    return int(row[0]) if row is not None else 0


def _balance(db: sqlite3.Connection, caller_id: str) -> int:
    return _first(db.execute("SELECT balance FROM accounts WHERE caller_id = ?", (caller_id,)))


def _held(db: sqlite3.Connection, hold: Hold) -> int | None:
    key = (hold.caller_id, hold.call_id)
    row = db.execute("SELECT amount FROM holds WHERE caller_id = ? AND call_id = ?", key).fetchone()
    return int(row[0]) if row is not None else None


def _marked(db: sqlite3.Connection, caller_id: str, mark: str) -> str | None:
    row = db.execute("SELECT call_id FROM marks WHERE caller_id = ? AND mark = ?", (caller_id, mark)).fetchone()
    return str(row[0]) if row is not None else None


def _record(db: sqlite3.Connection, caller_id: str, call_id: str) -> Usage | None:
    began_at = began_in(call_id)
    if began_at is None:
        return None
    row = db.execute(
        f"SELECT {_RECORD} FROM records WHERE caller_id = ? AND month = ? AND call_id = ?",
        (caller_id, month_of(began_at), call_id),
    ).fetchone()
    return _usage(row) if row is not None else None


def _usage(row: tuple[Any, ...]) -> Usage:
    usage = Usage(*row)
    return replace(usage, prepaid=bool(usage.prepaid))


def _month(db: sqlite3.Connection, caller_id: str, month: str) -> Month | None:
    row = db.execute(f"SELECT {_MONTH} FROM months WHERE month = ? AND caller_id = ?", (month, caller_id)).fetchone()
    return Month(*row) if row is not None else None


def _write(db: sqlite3.Connection, usage: Usage, keep_until: int) -> None:
    """Write a record and its month; a caller's first record of a month also sweeps what is kept no longer."""
    before = _month(db, usage.caller_id, usage.month)
    if before is None:
        for table in ("records", "marks"):
            db.execute(f"DELETE FROM {table} WHERE keep_until <= ?", (usage.began_at,))
    values = (*astuple(usage), usage.month, keep_until)
    db.execute(f"INSERT INTO records VALUES ({', '.join('?' * len(values))})", values)
    after = astuple((before or Month(usage.caller_id, usage.month)).plus(usage))
    db.execute(f"INSERT OR REPLACE INTO months VALUES ({', '.join('?' * len(after))})", after)


def _give_back(db: sqlite3.Connection, caller_id: str, now: int) -> None:
    """End the caller's holds that are over."""
    key = (caller_id, now)
    over = _first(db.execute("SELECT sum(amount) FROM holds WHERE caller_id = ? AND until <= ? HAVING count(*)", key))
    if over:
        db.execute(_PAY, (caller_id, over))
    db.execute("DELETE FROM holds WHERE caller_id = ? AND until <= ?", key)
