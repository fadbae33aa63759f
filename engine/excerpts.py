"""From hits to what is shown of them: ranked, spread, with their neighbours, cut, marked, and checked.

Decides which messages a page would show and at what length; `engine.pack` decides how many fit. Every hit is checked
here on its original text. Must never know sessions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.errors import BrokenSnapshot
from engine.hits import Hits
from engine.match import Frequency, Matcher, compile_tree
from engine.model import Message
from engine.pack import Piece
from engine.plan import meaning
from engine.rank import INSIDE, PREFIX, TENTHS, TOPIC, WHOLE, Scored, bm25
from engine.render import Shown, message_line, message_object
from engine.snippet import snippet
from engine.spread import Order, best_places, by_time, spread
from engine.view import View
from engine.windows import Window, merged

__all__ = ["Block", "Ranking", "Texts", "blocks_of", "check", "rank", "scored"]

Rows = NDArray[np.int64]

_SPREAD = 2_048
"""Best hits that are spread before all are: enough to hold as many conversations as a page shows."""

_TOPIC_CHARS = 120
"""Longest topic shown: a subject line, not a text."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows in the order they are to be shown, how many copies each stands for, and its score (0 in a timeline)."""

    rows: Rows
    copies: Rows
    scores: NDArray[np.float64]

    def first(self, most: int) -> "Ranking":
        """The first rows of it."""
        return Ranking(self.rows[:most], self.copies[:most], self.scores[:most])


def rank(hits: Hits, rows: Rows, order: str, most: int) -> Ranking:
    """Put some of the hits' rows in order, `best`, `newest` or `oldest`; at least the first `most` of them."""
    narrow, view = hits.view.narrow, hits.view
    sent = narrow.sent_at[rows]
    if order != "best":
        timeline = by_time(sent, rows, newest=order == "newest")
        return Ranking(rows[timeline.places], timeline.copies, np.zeros(len(rows)))
    scores = scored(hits, rows)
    best = best_places(scores, sent, _SPREAD)
    if len(best) < len(rows):
        first = _spread(view, rows[best], scores[best], sent[best]).first(most)
        # Of one conversation each, they are the best of their conversations, and nothing further back is better.
        if len(first.rows) == most and len(np.unique(narrow.conversation[first.rows])) == most:
            return replace(first, copies=_copies(view, first.rows, rows))
    return _spread(view, rows, scores, sent)


def _spread(view: View, rows: Rows, scores: NDArray[np.float64], sent: Rows) -> Ranking:
    narrow = view.narrow
    groups, conversations = narrow.copy[rows].astype(np.int64), narrow.conversation[rows].astype(np.int64)
    chosen: Order = spread(scores, sent, rows, groups, conversations, _talks(view, rows))
    return Ranking(rows[chosen.places], chosen.copies, scores[chosen.places])


def scored(hits: Hits, rows: Rows) -> NDArray[np.float64]:
    """The score of some of the hits' rows, in their order, whatever it is."""
    view = hits.view
    order = np.argsort(rows, kind="stable") if np.any(rows[1:] < rows[:-1]) else None
    ascending = rows if order is None else rows[order]
    scores = bm25(_frequencies(hits, ascending), view.lengths[ascending], view.average_length, view.size)
    if order is None:
        return scores
    out = np.empty_like(scores)
    out[order] = scores
    return out


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


@dataclass(frozen=True, slots=True)
class Block:
    """Rows shown together in order of time; those not in `hits` are shown for their neighbours' sake."""

    rows: tuple[int, ...]
    hits: frozenset[int]


def blocks_of(view: View, chosen: Sequence[int], matching: NDArray[np.bool_], context: int) -> list[Block]:
    """A block for each chosen row with up to `context` neighbours on each side, as `grep -C` does.

    Neighbours are those of its thread, or outside threads of its conversation. Blocks that overlap or touch are
    joined, at the place of the first. A neighbour that matches too is a hit.
    """
    if not context:
        return [Block((row,), frozenset((row,))) for row in chosen]
    windows = merged(Window.around(row, view.neighbours(row), context, context) for row in chosen)
    placed: set[int] = set()
    blocks = []
    for window in windows:
        rows = tuple(row for row in window.rows if row not in placed)
        placed.update(rows)
        if rows:
            blocks.append(Block(rows, frozenset(row for row in rows if matching[row])))
    return blocks


def check(matcher: Matcher, message: Message) -> None:
    """Hold a hit against its original text, before anything of it leaves.

    Raises:
        BrokenSnapshot: `snapshot_broken` when the text does not bear it out.
    """
    if not matcher.matches(message.topic, message.body):
        raise BrokenSnapshot(
            "snapshot_broken",
            "a hit is not borne out by its original text",
            next_step="run verify, then refresh",
        )


class Texts:
    """What is shown of messages under one query: made for one call, each message read once."""

    def __init__(self, view: View, matcher: Matcher, fields: frozenset[str], *, all_by_scan: bool = False) -> None:
        """`all_by_scan`: the head of the result says for all hits what found them."""
        self._view = view
        self._matcher = matcher
        self._fields = fields
        self._all_by_scan = all_by_scan
        self._messages: dict[int, Message] = {}

    def bare(self) -> "Texts":
        """The same texts with nothing but id and text: the least that can be shown."""
        return Texts(self._view, self._matcher, frozenset({"text", "truncated"}), all_by_scan=self._all_by_scan)

    def load(self, rows: Iterable[int]) -> None:
        """Read the messages of these rows, in one statement."""
        missing = [row for row in rows if row not in self._messages]
        if missing:
            self._messages.update(zip(missing, self._view.corpus.messages(missing), strict=True))

    def message(self, row: int) -> Message:
        """A message loaded before."""
        return self._messages[row]

    def hit(self, row: int, limit: int, *, copies: int, path: str | None, score: float | None) -> Shown:
        """A hit, its matches marked, checked on its original text.

        Raises:
            BrokenSnapshot: as `check`.
        """
        message = self._messages[row]
        check(self._matcher, message)
        return Shown(
            message=message,
            text=snippet(message.body, self._matcher.spans(message.body, "body"), limit),
            topic=snippet(message.topic, self._matcher.spans(message.topic, "topic"), _TOPIC_CHARS).text,
            thread_size=self._thread_size(row),
            copies=copies,
            match=path,
            score=score,
        )

    def neighbour(self, row: int, limit: int) -> Shown:
        """A message shown for a hit's sake: unmarked."""
        message = self._messages[row]
        return Shown(
            message=message,
            text=snippet(message.body, [], limit),
            topic=snippet(message.topic, [], _TOPIC_CHARS).text,
            thread_size=self._thread_size(row),
            around=True,
        )

    def piece(self, shown: Sequence[Shown], *, apart: bool) -> Piece:
        """Both forms of messages that stand together; `apart` puts an empty line before them."""
        lines = "\n".join(
            message_line(each, self._fields, by_scan=each.match == "substring" and not self._all_by_scan)
            for each in shown
        )
        return Piece(("\n" if apart else "") + lines, [message_object(each, self._fields) for each in shown])

    def _thread_size(self, row: int) -> int:
        return int(self._view.thread_sizes[self._view.narrow.thread[row]])
