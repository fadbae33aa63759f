"""Which snapshot a call reads: the current one, looked at again when the last look is old.

Decides when to look, and what to serve when the current snapshot is broken: the one served before, or, in a process
that served none yet, the newest older one that is whole. A call keeps the corpus it began with, and waits for a look
of another only while there is nothing to serve. Must never know requests.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

import duckdb

from engine.errors import BrokenSnapshot, EngineError, NotFound, Unavailable
from engine.limits import Limits
from engine.ports import SnapshotStore
from engine.sight import Sight
from engine.snapshot.database import Database, DatabaseSettings, connect
from engine.snapshot.open import Corpus, open_corpus
from engine.snapshot.statements import Statements
from engine.tally import note_snapshot
from engine.view import View

__all__ = ["SnapshotReader"]

_VIEWS = 32
"""Views kept: each holds a few masks over all rows."""


class SnapshotReader:
    """One per process; safe to share between threads. Nothing is opened before the first call.

    `metered` may put a counter around the statements of each snapshot that is opened.
    """

    def __init__(
        self,
        store: SnapshotStore,
        settings: DatabaseSettings,
        limits: Limits,
        warn: Callable[[str], None],
        look_seconds: int = 30,
        metered: Callable[[Statements], Statements] = lambda statements: statements,
    ) -> None:
        self._store = store
        self._settings = settings
        self._limits = limits
        self._warn = warn
        self._look = look_seconds * 1_000_000
        self._metered = metered
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._looks = 0
        self._failure: EngineError | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._corpus: Corpus | None = None
        self._looked_at = 0
        self._views: OrderedDict[tuple[str, Sight], View] = OrderedDict()

    def view(self, sight: Sight, now: int) -> View:
        """The current corpus as this sight sees it.

        Raises:
            NotFound: `no_snapshot` before the first refresh.
            Unavailable, BrokenSnapshot: there is no snapshot to serve.
        """
        corpus = self._current(now)
        note_snapshot(corpus.manifest.created_at)
        with self._lock:
            key = (corpus.manifest.snapshot_id, sight)
            view = self._views.get(key)
            if view is None:
                for old in [each for each in self._views if each[0] != key[0]]:
                    del self._views[old]
                view = self._views[key] = View(corpus, sight, self._limits)
            self._views.move_to_end(key)
            while len(self._views) > _VIEWS:
                self._views.popitem(last=False)
            return view

    def close(self) -> None:
        """Let go of the connection; running calls fail."""
        with self._looking, self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = self._corpus = None
            self._views.clear()

    def _current(self, now: int) -> Corpus:
        corpus, looks = self._corpus, self._looks
        if corpus is None:
            self._looking.acquire()
        elif 0 <= now - self._looked_at < self._look or not self._looking.acquire(blocking=False):
            self._renew()
            return corpus
        try:
            if corpus is None and self._looks != looks:
                # Another call looked while this one waited: what it met, this one need not wait for again.
                if self._corpus is not None:
                    return self._corpus
                if self._failure is not None:
                    raise self._failure.with_traceback(None)
            return self._looked(now)
        finally:
            self._looking.release()

    def _looked(self, now: int) -> Corpus:
        """The current corpus, or what is served in its place."""
        try:
            self._failure = None
            return self._opened(now)
        except (BrokenSnapshot, Unavailable, NotFound) as error:
            corpus = self._corpus or self._before(error)
            if corpus is None:
                self._failure = error
                raise
            self._corpus, self._looked_at = corpus, now
            self._warn(f"the current snapshot cannot be opened ({error.code}); the one before is served")
            return corpus
        finally:
            self._looks += 1

    def _opened(self, now: int) -> Corpus:
        current = self._store.current()
        if current is None:
            raise NotFound("no_snapshot", "there is no current snapshot", next_step="run refresh")
        self._renew()
        if self._corpus is None or self._corpus.manifest.snapshot_id != current:
            self._corpus = self._open(current)
        self._looked_at = now
        return self._corpus

    def _before(self, error: EngineError) -> Corpus | None:
        """The newest older snapshot that is whole, where the current one is not; none while the store is out of reach.

        A process that starts now then answers as those do that had opened it before.
        """
        current = None if isinstance(error, Unavailable) else self._store.current()
        if current is not None:
            for snapshot_id in reversed([each for each in self._store.snapshots() if each < current]):
                with suppress(BrokenSnapshot, NotFound):
                    return self._open(snapshot_id)
        return None

    def _open(self, snapshot_id: str) -> Corpus:
        database = Database(self._connected(), self._limits.scan.seconds)
        return open_corpus(self._store, snapshot_id, self._metered(database))

    def _connected(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = connect(self._settings, [self._store.location], self._store.prepare)
        return self._connection

    def _renew(self) -> None:
        if self._connection is not None:
            self._store.renew(self._connection)
