"""A corpus as one caller sees it: every number, name and neighbour comes from visible rows alone.

Decides what is visible, searchable, and in which talk a message stands. Must never know what is asked. Row
arrays are sorted row numbers unless said otherwise.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.limits import Limits
from engine.model import ACTIVITY, TOMBSTONE
from engine.sight import Sight
from engine.snapshot.open import Corpus
from engine.times import SECOND

__all__ = ["View"]

_T = TypeVar("_T")
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]


class Remembered:
    """Values by key, the longest unused let go first; safe to share between threads."""

    def __init__(self, most: int = 32) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of a key, made where it is not known. Two at once may both make it."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


class View:
    """The visible part of a corpus; what is derived from it is computed once."""

    def __init__(self, corpus: Corpus, sight: Sight, limits: Limits) -> None:
        self.corpus = corpus
        self.sight = sight
        self.limits = limits
        self.narrow = corpus.narrow
        self.visible = _visible(corpus, sight)
        kinds = [value for value, _ in corpus.manifest.kinds]
        self.activity = kinds.index(ACTIVITY) if ACTIVITY in kinds else -1
        tombstone = kinds.index(TOMBSTONE) if TOMBSTONE in kinds else -1
        self.said = self.visible & (self.narrow.kind != tombstone)
        """Visible rows that can match at all: a tombstone has no text and is never counted."""
        self.searchable = self.said & (self.narrow.kind != self.activity)
        """What a call without `kind` searches."""
        self.talked = self.visible & (self.narrow.kind != self.activity)
        """What a thread shows: a deleted root stays in its place."""
        self._made: dict[object, Any] = {}

    def once(self, make: Callable[["View"], _T]) -> _T:
        """`make(view)`, made on first use and kept as long as the view: names of ten thousand take their time."""
        if make not in self._made:
            self._made[make] = make(self)
        made: _T = self._made[make]
        return made

    @cached_property
    def size(self) -> int:
        """Messages that document frequencies are out of."""
        return int(np.count_nonzero(self.said))

    @cached_property
    def said_span(self) -> tuple[int, int] | None:
        """From the second of the first message in sight that can match to the end of the last's; `None` for none."""
        return self._span(self.said)

    @cached_property
    def searchable_span(self) -> tuple[int, int] | None:
        """Of those that a call without `kind` searches."""
        return self._span(self.searchable)

    def _span(self, mask: Mask) -> tuple[int, int] | None:
        sent = self.narrow.second[mask]
        if not len(sent):
            return None
        return int(sent.min()) * SECOND, int(sent.max()) * SECOND + SECOND - 1

    def lengths(self, rows: Rows) -> NDArray[np.float64]:
        """Length of some rows in words, for ranking: never under the floor."""
        return np.maximum(self.narrow.words[rows].astype(np.float64), self.limits.word_floor)

    @cached_property
    def average_length(self) -> float:
        """Mean of `lengths` over the messages that can match; 1 when there are none."""
        if not self.size:
            return 1.0
        counts = np.bincount(self.narrow.words[self.said])
        return float(counts @ np.maximum(np.arange(len(counts)), self.limits.word_floor)) / self.size

    @cached_property
    def thread_sizes(self) -> NDArray[np.int32]:
        """Messages per thread ordinal: neither activity nor tombstones count."""
        sizes = np.bincount(self.narrow.thread[self.searchable], minlength=self.corpus.manifest.threads)
        return sizes.astype(np.int32)

    @cached_property
    def thread_order(self) -> Rows:
        """Thread ordinals by conversation and first message in sight: their own order knows of what is hidden."""
        ordinals = np.arange(self.corpus.manifest.threads)
        if self.sight.is_everything:
            return ordinals
        rows = np.flatnonzero(self.visible)
        threads, first = np.unique(self.narrow.thread[rows], return_index=True)
        rows = rows[first]
        order = np.lexsort((threads, self.narrow.sent_at(rows), self.narrow.conversation[rows]))
        return np.concatenate([threads[order], np.setdiff1d(ordinals, threads)]).astype(np.int64)

    @cached_property
    def people(self) -> NDArray[np.int64]:
        """For each author ordinal, the ordinal of the person: one per author id, whatever the name."""
        persons: dict[str, int] = {}
        return np.array(
            [persons.setdefault(author_id, len(persons)) for author_id, _, _ in self.corpus.manifest.authors],
            dtype=np.int64,
        )

    @cached_property
    def persons(self) -> NDArray[np.integer]:
        """For each row the ordinal of the person who wrote it."""
        author = self.narrow.author
        if np.array_equal(self.people, np.arange(len(self.people))):
            return author
        persons: NDArray[np.integer] = self.people.astype(author.dtype)[author]
        return persons

    @cached_property
    def hidden(self) -> Mask:
        """Rows that can match and that a call without `kind` does not search."""
        hidden: Mask = self.said & ~self.searchable
        return hidden

    @cached_property
    def remembered(self) -> Remembered:
        """What depends on filters and not on words, kept for the next question."""
        return Remembered()

    @cached_property
    def close(self) -> Remembered:
        """Close words by term and filters: the same term is counted, then searched for."""
        return Remembered(256)

    @cached_property
    def timeline(self) -> NDArray[np.int32]:
        """Rows that a thread would show, sorted by conversation and time: a conversation read like a log."""
        rows = np.flatnonzero(self.talked).astype(np.int32)
        order = np.lexsort((rows, self.narrow.sent_at(rows), self.narrow.conversation[rows]))
        return rows[order]

    @cached_property
    def talks(self) -> NDArray[np.int32]:
        """For each row a number of its talk: its thread, or outside threads its episode.

        An episode is a run in one conversation without a gap over `episode_gap_seconds`. Episodes are numbered
        after all threads. Rows outside `timeline` have -1.
        """
        rows = self.timeline
        gap = self.limits.episode_gap_seconds * SECOND
        breaks = np.ones(len(rows), dtype=bool)
        if len(rows):
            same = self.narrow.conversation[rows[1:]] == self.narrow.conversation[rows[:-1]]
            close = np.diff(self.narrow.sent_at(rows)) <= gap
            breaks[1:] = ~(same & close)
        talks = np.full(self.corpus.rows, -1, dtype=np.int32)
        threads = self.narrow.thread[rows].astype(np.int32)
        episodes = np.cumsum(breaks, dtype=np.int32) + np.int32(len(self.thread_sizes))
        talks[rows] = np.where(self.thread_sizes[threads] > 1, threads, episodes)
        return talks

    def row_of(self, message_id: str) -> int | None:
        """The row of a visible message, `None` where there is none or it is out of sight."""
        return self.corpus.row_of(message_id, self.visible)

    def thread_rows(self, row: int) -> Rows:
        """Rows of the thread of `row` that a thread shows, in order of time."""
        thread = self.narrow.thread
        first, end = np.searchsorted(thread, [thread[row], thread[row] + 1])
        rows = np.arange(first, end)
        within: Rows = rows[self.talked[first:end]]
        return within

    def conversation_rows(self, row: int) -> Rows:
        """Rows of the conversation of `row`, in order of time."""
        conversation = self.narrow.conversation[row]
        first, end = np.searchsorted(self.narrow.conversation[self.timeline], [conversation, conversation + 1])
        return self.timeline[first:end].astype(np.int64)

    def neighbours(self, row: int) -> Rows:
        """Rows of the thread of `row`, or outside threads of its conversation, with itself: what stands around it."""
        threaded = self.thread_sizes[self.narrow.thread[row]] > 1
        rows = self.thread_rows(row) if threaded else self.conversation_rows(row)
        return rows if self.talked[row] else np.array([row], dtype=np.int64)


def _visible(corpus: Corpus, sight: Sight) -> Mask:
    visible = np.ones(corpus.rows, dtype=bool)
    if sight.is_everything:
        return visible
    narrow, manifest = corpus.narrow, corpus.manifest
    if sight.allow or sight.deny:
        seen = np.array([sight.sees_conversation(c_id, name) for c_id, name, _ in manifest.conversations], dtype=bool)
        visible &= seen[narrow.conversation]
    if sight.roles:
        visible &= np.array([value in sight.roles for value, _ in manifest.roles], dtype=bool)[narrow.from_role]
    if sight.kinds:
        visible &= np.array([value in sight.kinds for value, _ in manifest.kinds], dtype=bool)[narrow.kind]
    if sight.oldest is not None:
        visible &= narrow.since(sight.oldest)
    return visible
