"""One term looked up in one shard: its rows, how often it stands in each and how, and the words it stands in.

Frequencies are in tenths, so that sums are exact: `engine.rank` weighs a whole word, a prefix, an inside match. Must
never know filters, sight or other shards.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.index.lexicon import Matches
from engine.index.pieces import Pattern, Piece
from engine.index.places import Places, chained, gram_places, gram_rows, without_overlap
from engine.index.rows import intersected, summed, unique
from engine.index.shard import WORDS, ShardIndex
from engine.query.tree import Term
from engine.rank import INSIDE, PREFIX, TOPIC, WHOLE

__all__ = ["ShardTerm"]

Longs = NDArray[np.int64]


class ShardTerm:
    """A term in a shard; computed once for each thing asked. For an unsettled pattern `rows` are candidates."""

    def __init__(self, shard: ShardIndex, term: Term, pattern: Pattern) -> None:
        self._shard = shard
        self._pattern = pattern
        self._topics = {"any": (0, 1), "body": (0,), "topic": (1,)}[term.part]

    @cached_property
    def rows(self) -> NDArray[np.int32]:
        """The sorted rows it stands in."""
        if len(self._pattern.pieces) > 1:
            parts: list[NDArray[np.integer]] = [self._chains[topic].rows for topic in self._topics]
        else:
            parts = [self._shard.rows_of(WORDS[topic], self._numbers(topic)) for topic in self._topics]
            parts += [gram_rows(self._shard, self._piece, topic) for topic in self._topics]
        return unique(_joined(parts), self._shard.files.rows).astype(np.int32)

    def tenths(self, rows: Longs) -> Longs:
        """The weighted frequency in each of some sorted rows, in tenths; only for a settled pattern."""
        out = np.zeros(len(rows), dtype=np.int64)
        size = self._shard.files.rows
        for topic in self._topics:
            factor = TOPIC if topic else 1
            if len(self._pattern.pieces) > 1:
                places = without_overlap(self._chains[topic])
            else:
                found, weights = self._word_weights(topic)
                out += factor * summed(found, weights, rows, size)
                places = without_overlap(gram_places(self._shard, self._piece, topic))
            out += factor * summed(places.rows, _weights(places), rows, size)
        return out

    def words(self, rows: Longs) -> tuple[dict[str, int], Longs]:
        """The words it stands in with how many of `rows` hold each; and which of `rows` hold it in runs without spaces.

        Only for a settled pattern of one piece.
        """
        mask = np.zeros(self._shard.files.rows, dtype=bool)
        mask[rows] = True
        counted = {topic: self._counted(topic, mask) for topic in self._topics}
        runs = _joined([gram_rows(self._shard, self._piece, topic) for topic in self._topics])
        return self._named(counted, mask), np.unique(runs[mask[runs]])

    def _counted(self, topic: int, mask: NDArray[np.bool_]) -> Longs:
        """For each word how many of the rows in a mask hold it there."""
        numbers = self._numbers(topic)
        sizes = self._shard.document_frequencies(WORDS[topic], numbers)
        if not len(numbers) or mask[self.rows].all():
            return sizes
        rows = self._shard.rows_of(WORDS[topic], numbers)
        counted: Longs = np.add.reduceat(mask[rows], np.cumsum(sizes) - sizes, dtype=np.int64)
        return counted

    def _named(self, counted: dict[int, Longs], mask: NDArray[np.bool_]) -> dict[str, int]:
        """The words counted, by name; a row that holds a word in body and topic is one."""
        out: dict[str, int] = {}
        for topic, counts in counted.items():
            region, numbers = self._shard.region(WORDS[topic]), self._numbers(topic)
            for at in np.flatnonzero(counts).tolist():
                word, count = region.term(int(numbers[at])), int(counts[at])
                if word in out:
                    count -= self._in_both(word, mask)
                out[word] = out.get(word, 0) + count
        return out

    def _in_both(self, word: str, mask: NDArray[np.bool_]) -> int:
        """How many rows in a mask hold a word in body and topic."""
        body, topic = (
            self._shard.rows_of(region, self._shard.region(region).find(word, starts=True, ends=True)).astype(np.int64)
            for region in WORDS
        )
        return int(np.count_nonzero(mask[intersected(body, topic, len(mask))]))

    @property
    def _piece(self) -> Piece:
        return self._pattern.pieces[0]

    @cached_property
    def _chains(self) -> dict[int, Places]:
        return {topic: chained(self._shard, self._pattern, topic) for topic in self._topics}

    @cached_property
    def _matches(self) -> dict[int, Matches]:
        return {topic: self._shard.region(WORDS[topic]).matches(self._piece.text) for topic in self._topics}

    def _numbers(self, topic: int) -> Longs:
        piece = self._piece
        if piece.starts or piece.ends:
            return self._shard.region(WORDS[topic]).find(piece.text, starts=piece.starts, ends=piece.ends)
        return self._matches[topic].numbers

    def _word_weights(self, topic: int) -> tuple[NDArray[np.integer], NDArray[np.uint32]]:
        """Rows and weights of every posting of the words: of two letters there are millions, so none is wide."""
        numbers = self._numbers(topic)
        region = WORDS[topic]
        rows, tf = self._shard.rows_of(region, numbers), self._shard.frequencies_of(region, numbers)
        if self._piece.starts:
            return rows, tf * np.uint32(WHOLE)
        m = self._matches[topic]
        each = (WHOLE * m.whole + PREFIX * m.prefix + INSIDE * m.inside).astype(np.uint32)
        weights = np.repeat(each, self._shard.document_frequencies(region, numbers))
        weights *= tf
        return rows, weights


def _weights(places: Places) -> Longs:
    return np.where(places.left, np.where(places.right, WHOLE, PREFIX), INSIDE)


def _joined(parts: Sequence[NDArray[np.integer]]) -> Longs:
    kept = [part.astype(np.int64, copy=False) for part in parts if len(part)]
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)
