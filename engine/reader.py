"""Which snapshot a call reads: the current one, looked at again when the last look is old.

Decides when to look, and what to serve when the current snapshot is broken: the one served before. A call keeps the
corpus it began with. Must never know requests.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable

import duckdb

from engine.errors import BrokenSnapshot, EngineError, NotFound, Unavailable
from engine.limits import Limits
from engine.ports import SnapshotStore
from engine.sight import Sight
from engine.snapshot.database import Database, DatabaseSettings, connect
from engine.snapshot.open import Corpus, open_corpus
from engine.view import View

__all__ = ["SnapshotReader"]

_VIEWS = 32
"""Views kept: each holds a few masks over all rows."""


class SnapshotReader:
    """One per process; safe to share between threads. Nothing is opened before the first call."""

    def __init__(
        self,
        store: SnapshotStore,
        settings: DatabaseSettings,
        limits: Limits,
        warn: Callable[[str], None],
        look_seconds: int = 30,
    ) -> None:
        self._store = store
        self._settings = settings
        self._limits = limits
        self._warn = warn
        self._look = look_seconds * 1_000_000
        self._lock = threading.Lock()
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
        with self._lock:
            corpus = self._current(now)
            key = (corpus.manifest.snapshot_id, sight)
            view = self._views.get(key)
            if view is None:
                view = self._views[key] = View(corpus, sight, self._limits)
            self._views.move_to_end(key)
            while len(self._views) > _VIEWS:
                self._views.popitem(last=False)
            return view

    def close(self) -> None:
        """Let go of the connection; running calls fail."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = self._corpus = None
            self._views.clear()

    def _current(self, now: int) -> Corpus:
        if self._corpus is not None and 0 <= now - self._looked_at < self._look:
            self._renew()
            return self._corpus
        try:
            return self._opened(now)
        except EngineError as error:
            if self._corpus is None:
                raise
            if not isinstance(error, BrokenSnapshot | Unavailable | NotFound):
                raise
            self._looked_at = now
            self._warn(f"the current snapshot cannot be opened ({error.code}); the one before is served")
            return self._corpus

    def _opened(self, now: int) -> Corpus:
        current = self._store.current()
        if current is None:
            raise NotFound("no_snapshot", "there is no snapshot yet", next_step="run refresh")
        if self._corpus is None or self._corpus.manifest.snapshot_id != current:
            self._corpus = open_corpus(self._store, current, Database(self._connected(), self._limits.scan.seconds))
            for key in [key for key in self._views if key[0] != current]:
                del self._views[key]
        self._renew()
        self._looked_at = now
        return self._corpus

    def _connected(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = connect(self._settings, [self._store.location], self._store.prepare)
        return self._connection

    def _renew(self) -> None:
        if self._connection is not None:
            self._store.renew(self._connection)
