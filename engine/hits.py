"""What matches: the tree evaluated over the corpus, inside the scope that filters and sight leave.

Decides which rows are hits and counts them exactly. Must never know order, texts or bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.plan import Occurrences, Path, distinct_terms, matching_rows, meaning, occurrences
from engine.query.bind import BoundQuery
from engine.query.tree import positive_terms
from engine.tally import PlannedTerm, add, note_plan
from engine.times import SECOND
from engine.view import View

__all__ = ["Found", "Hits", "Searched", "find"]

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Found:
    """How many messages, threads, conversations and people; instants of first and last, `None` without any."""

    messages: int
    threads: int
    conversations: int
    authors: int
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class Searched:
    """What was searched. `hidden_activity` is `None` where nothing is excluded by default, `as_of` an instant.

    `by_scan` is set where the index answered no term.
    """

    query: BoundQuery
    hidden_activity: int | None
    as_of: int
    by_scan: bool


class Hits:
    """The matches of one bound query in one view."""

    def __init__(self, view: View, query: BoundQuery, found: Sequence[Occurrences]) -> None:
        self.view = view
        self.query = query
        self.occurrences = found
        self.matching: Rows | None = None if query.tree is None else matching_rows(query.tree, found, view.corpus.rows)
        """Sorted rows the words alone match, in sight or not; `None` when there are no words."""
        self._frequencies: dict[tuple[str, bool, str], int] = {}

    @cached_property
    def scope(self) -> Mask:
        """Rows that filters and sight leave, whatever the words."""
        return self.query.scope(self.view)

    @cached_property
    def rows(self) -> Rows:
        """The sorted rows of all hits."""
        return self.within(self.scope)

    @cached_property
    def found(self) -> Found:
        """The exact counts."""
        return count_rows(self.view, self.rows)

    @cached_property
    def searched(self) -> Searched:
        """What every result says of the search."""
        by_scan = bool(self.occurrences) and all(each.path == "substring" for each in self.occurrences)
        return Searched(self.query, self.hidden_activity(), self.view.corpus.manifest.created_at, by_scan)

    def path(self, row: int) -> Path:
        """What found a hit: `fts` unless one of the positive terms that hold on it was scanned for.

        A hit for what it lacks has none: then every term counts. Without words the columns found it, which no scan
        reads.
        """
        holding = [each for each in self._positive if _holds(each.rows, row)]
        return "substring" if any(each.path == "substring" for each in holding or self.occurrences) else "fts"

    @cached_property
    def _positive(self) -> list[Occurrences]:
        """Where the terms occur whose presence can make a message match."""
        wanted = set() if self.query.tree is None else {meaning(term) for term in positive_terms(self.query.tree)}
        return [each for each in self.occurrences if meaning(each.term) in wanted]

    def within(self, scope: Mask) -> Rows:
        """The sorted rows of a scope that the words match."""
        return np.flatnonzero(scope) if self.matching is None else self.matching[scope[self.matching]]

    def hidden_activity(self) -> int | None:
        """Matches among activity, which is not searched by default; `None` when `kind` was asked for."""
        hidden = self.query.hidden(self.view)
        return None if hidden is None else len(self.within(hidden))

    def document_frequency(self, each: Occurrences) -> int:
        """How many messages in sight a term occurs in."""
        asked = meaning(each.term)
        if asked not in self._frequencies:
            self._frequencies[asked] = int(np.count_nonzero(self.view.said[each.rows]))
        return self._frequencies[asked]


def find(view: View, query: BoundQuery, *, brute: bool = False) -> Hits:
    """All matches.

    Raises:
        Unavailable: `too_slow`, `store_unreachable`.
    """
    wanted = [] if query.tree is None else distinct_terms(query.tree)
    hits = Hits(view, query, occurrences(view.corpus, wanted, brute=brute))
    if any(each.path == "substring" for each in hits.occurrences):
        add("rows_scanned", view.corpus.rows)
    note_plan([PlannedTerm(str(each.term), each.path, hits.document_frequency(each)) for each in hits.occurrences])
    return hits


def count_rows(view: View, rows: Rows) -> Found:
    """Count messages, threads, conversations and people of some rows."""
    if not len(rows):
        return Found(0, 0, 0, 0, None, None)
    narrow = view.narrow
    sent = narrow.second[rows]
    return Found(
        messages=len(rows),
        threads=_runs(narrow.thread[rows]),
        conversations=_runs(narrow.conversation[rows]),
        authors=int(np.count_nonzero(np.bincount(view.persons[rows]))),
        first=int(sent.min()) * SECOND,
        last=int(sent.max()) * SECOND,
    )


def _holds(rows: Rows, row: int) -> bool:
    """Whether a row is among some sorted ones."""
    place = int(np.searchsorted(rows, row))
    return place < len(rows) and int(rows[place]) == row


def _runs(ordinals: NDArray[np.integer]) -> int:
    """How many different ordinals: rows are sorted by conversation and thread, so equal ones stand together."""
    return 1 + int(np.count_nonzero(ordinals[1:] != ordinals[:-1]))
