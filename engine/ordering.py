"""Hits put in the order they are shown in: scored, in tiers by what they hold, spread within each.

Decides which of an answer's messages come first. Must never know texts' forms, sessions or bytes.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.hits import Hits
from engine.match import Frequency, compile_tree
from engine.plan import meaning
from engine.rank import INSIDE, PREFIX, TENTHS, TOPIC, WHOLE, Scored, bm25, held, tiers
from engine.spread import Order, best_places, by_time, spread
from engine.view import View

__all__ = ["Ranking", "rank", "scored"]

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]

_SPREAD = 2_048
"""Best hits that are spread before all are: enough to hold as many conversations as a page shows."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows in the order they are to be shown, how many copies each stands for, and its score (0 in a timeline)."""

    rows: Rows
    copies: Rows
    scores: Scores

    def first(self, most: int) -> "Ranking":
        """The first rows of it."""
        return Ranking(self.rows[:most], self.copies[:most], self.scores[:most])

    def then(self, other: "Ranking") -> "Ranking":
        """One after the other."""
        return Ranking(
            np.concatenate((self.rows, other.rows)),
            np.concatenate((self.copies, other.copies)),
            np.concatenate((self.scores, other.scores)),
        )


def rank(hits: Hits, rows: Rows, order: str, most: int) -> Ranking:
    """Put some of the hits' rows in order, `best`, `newest` or `oldest`; at least the first `most` of them."""
    view = hits.view
    if order != "best":
        timeline = by_time(view.narrow.sent_at(rows), rows, newest=order == "newest")
        return Ranking(rows[timeline.places], timeline.copies, np.zeros(len(rows)))
    found = _Scoring.of(hits, rows)
    ranked = Ranking(rows[:0], rows[:0], found.scores[:0])
    for tier in np.unique(found.tiers).tolist():
        if len(ranked.rows) >= most:
            break
        # Nearly always all are: of millions each copy is another hundred megabytes.
        inside = found.tiers == tier if found.tiers.any() else slice(None)
        ranked = ranked.then(_in_tier(view, rows[inside], found.scores[inside], most - len(ranked.rows)))
    return ranked


def _in_tier(view: View, rows: Rows, scores: Scores, most: int) -> Ranking:
    narrow = view.narrow
    best = best_places(scores, lambda places: narrow.sent_at(rows[places]), _SPREAD)
    if len(best) < len(rows):
        first = _spread(view, rows[best], scores[best]).first(most)
        # Of one conversation each, they are the best of their conversations, and nothing further back is better.
        if len(first.rows) == most and len(np.unique(narrow.conversation[first.rows])) == most:
            return replace(first, copies=_copies(view, first.rows, rows))
    return _spread(view, rows, scores)


def _spread(view: View, rows: Rows, scores: Scores) -> Ranking:
    narrow = view.narrow
    groups, conversations = narrow.copy[rows].astype(np.int64), narrow.conversation[rows].astype(np.int64)
    chosen: Order = spread(scores, narrow.sent_at(rows), rows, groups, conversations, _talks(view, rows))
    return Ranking(rows[chosen.places], chosen.copies, scores[chosen.places])


@dataclass(frozen=True, slots=True)
class _Scoring:
    """The score and the tier of each of some rows."""

    scores: Scores
    tiers: NDArray[np.int8]

    @classmethod
    def of(cls, hits: Hits, rows: Rows) -> "_Scoring":
        if not np.all(rows[1:] > rows[:-1]):
            order = np.argsort(rows, kind="stable")
            found = cls.of(hits, rows[order])
            back = np.argsort(order)
            return cls(found.scores[back], found.tiers[back])
        view = hits.view
        scores, holds = np.empty(len(rows)), np.empty(len(rows))
        # A shard at a time: an index tells frequencies of all of a shard's rows at once, and of no more.
        edges = np.searchsorted(rows, [shard.first_row for shard in view.corpus.manifest.shards]).tolist()
        for first, end in pairwise([*edges, len(rows)]):
            part = slice(first, end)
            terms = _frequencies(hits, rows[part])
            scores[part] = bm25(terms, view.lengths(rows[part]), view.average_length, view.size)
            holds[part] = held(terms, end - first, view.size)
        return cls(scores, tiers(holds))


def scored(hits: Hits, rows: Rows) -> Scores:
    """The score of some of the hits' rows, in their order, whatever it is."""
    return _Scoring.of(hits, rows).scores


def _copies(view: View, chosen: Rows, rows: Rows) -> Rows:
    """How many further copies of each chosen row are among the rows."""
    groups, wanted = view.narrow.copy[rows], view.narrow.copy[chosen]
    is_wanted = np.zeros(view.corpus.manifest.copy_groups, dtype=bool)
    is_wanted[wanted] = True
    found, sizes = np.unique(groups[is_wanted[groups]], return_counts=True)
    copies: Rows = sizes[np.searchsorted(found, wanted)] - 1
    return copies


def _talks(view: View, rows: Rows) -> Rows:
    """The talk of each row; a row that stands in no timeline is one of its own."""
    talks = view.talks[rows]
    return np.where(talks >= 0, talks, -1 - rows)


def _frequencies(hits: Hits, rows: Rows) -> list[Scored]:
    """Weighted frequencies of the positive terms: from the index where it knows them, else counted on folded texts."""
    matcher = compile_tree(hits.query.tree)
    if not matcher.positive or not len(rows):
        return []
    found = {meaning(each.term): each for each in hits.occurrences}
    terms = [found[meaning(literal.term)] for literal in matcher.positive]
    tenths = [each.tenths(rows) for each in terms]
    if any(known is None for known in tenths):
        texts = hits.view.corpus.folded(rows)
        counts = [matcher.counts(topic, body) for topic, body in texts]
        tenths = [
            known
            if known is not None
            else np.array([TOPIC * _weight(row[i].topic) + _weight(row[i].body) for row in counts], dtype=np.int64)
            for i, known in enumerate(tenths)
        ]
    return [
        Scored(known / TENTHS, hits.document_frequency(each))
        for each, known in zip(terms, tenths, strict=True)
        if known is not None
    ]


def _weight(found: Frequency) -> int:
    return WHOLE * found.whole + PREFIX * found.prefix + INSIDE * found.inside
