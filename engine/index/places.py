"""Where a pattern stands, from positions: occurrences of pieces, chained, none overlapping another.

A place is `row << 32 | position`. Within one word places are told apart by bytes: `head` lie before an occurrence in
its first word, it ends before `tail` in its last one. In a run of bigrams every character has a position, and an
occurrence ends at the one behind it: `head` and `tail` are 0. Must never know filters, weights or texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from engine.index.pieces import Pattern, Piece
from engine.index.rows import unique
from engine.index.shard import GRAMS, WORDS, Postings, ShardIndex

__all__ = ["Places", "chained", "gram_places", "gram_rows", "without_overlap"]

Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]

_ROW = 32


@dataclass(frozen=True, slots=True)
class Places:
    """Occurrences in order of `start`; `left` and `right`: a word begins, ends with it."""

    start: Longs
    end: Longs
    head: Longs
    tail: Longs
    left: Mask
    right: Mask

    @property
    def rows(self) -> Longs:
        """The row of each."""
        return self.start >> _ROW

    def where(self, kept: NDArray[np.generic]) -> "Places":
        """Some of them, or all in another order."""
        return Places(*(getattr(self, name)[kept] for name in Places.__slots__))


def gram_rows(shard: ShardIndex, piece: Piece, topic: int) -> Longs:
    """Sorted rows where a piece stands in a run without spaces."""
    needed = _grams_of(shard, piece, topic)
    if needed is None:
        return np.zeros(0, dtype=np.int64)
    if len(needed) == 1:
        return unique(shard.rows_of(GRAMS[topic], needed[0][0]), shard.files.rows)
    return unique(_gram_starts(shard, needed, topic) >> _ROW, shard.files.rows)


def gram_places(shard: ShardIndex, piece: Piece, topic: int) -> Places:
    """Where a piece stands in runs without spaces."""
    needed = _grams_of(shard, piece, topic)
    starts = np.zeros(0, dtype=np.int64) if needed is None else _gram_starts(shard, needed, topic)
    length = len(piece.text)
    left = np.ones(len(starts), dtype=bool) if piece.starts else _among(shard, f" {piece.text[0]}", topic, starts, 0)
    right = (
        np.ones(len(starts), dtype=bool)
        if piece.ends
        else _among(shard, f"{piece.text[-1]} ", topic, starts, length - 1)
    )
    zeros = np.zeros(len(starts), dtype=np.int64)
    return Places(starts, starts + length, zeros, zeros, left, right)


Needed = list[tuple[Longs, int]]
"""Terms of a region, and how far their positions lie behind the piece's start."""


def _grams_of(shard: ShardIndex, piece: Piece, topic: int) -> Needed | None:
    """The bigrams that make up a piece; `None` when one of them does not exist."""
    region = shard.region(GRAMS[topic])
    if not len(region):
        return None
    text, last = piece.text, len(piece.text) - 1
    grams = [(f" {text[0]}", 0)] if piece.starts else []
    grams += [(text[at : at + 2], at) for at in {*range(0, last, 2), last - 1} if at >= 0]
    grams += [(f"{text[last]} ", last)] if piece.ends else []
    needed = [(region.find(gram, starts=True, ends=True), at) for gram, at in grams]
    if not needed:
        needed = [(region.find(text, starts=True), 0)]
    return needed if all(len(numbers) for numbers, _ in needed) else None


def _gram_starts(shard: ShardIndex, needed: Needed, topic: int) -> Longs:
    """Sorted places where all of them stand."""
    size, region = shard.files.rows, GRAMS[topic]
    listed = [(shard.postings(region, numbers), at) for numbers, at in needed]
    if len(listed) == 1:
        postings = [(each.all(), at) for each, at in listed]
    else:
        common = reduce(np.logical_and, [_mask(size, each.rows) for each, _ in listed])
        postings = [(each.among(common), at) for each, at in listed]
    places = [np.sort(_places_of(shard, each) - at) for each, at in postings]
    return reduce(lambda one, other: np.intersect1d(one, other, assume_unique=True), places)


def _places_of(shard: ShardIndex, postings: Postings) -> Longs:
    owners, positions = shard.positions(postings)
    return (postings.rows.astype(np.int64)[owners] << _ROW) | positions


def _among(shard: ShardIndex, gram: str, topic: int, starts: Longs, at: int) -> Mask:
    """At which of the places the bigram stands, `at` positions behind them."""
    if not len(starts):
        return np.zeros(0, dtype=bool)
    numbers = shard.region(GRAMS[topic]).find(gram, starts=True, ends=True)
    among = _mask(shard.files.rows, starts >> _ROW)
    found = _places_of(shard, shard.postings(GRAMS[topic], numbers).among(among))
    return np.isin(starts + at, found)


def chained(shard: ShardIndex, pattern: Pattern, topic: int) -> Places:
    """Where all pieces of a pattern stand at their distances; at least one piece."""
    size = shard.files.rows
    region = shard.region(WORDS[topic])
    numbers = [region.find(piece.text, starts=piece.starts, ends=piece.ends) for piece in pattern.pieces]
    grams = [gram_places(shard, piece, topic) for piece in pattern.pieces]
    postings = [shard.postings(WORDS[topic], each) for each in numbers]
    masks = [_mask(size, words.rows, runs.rows) for words, runs in zip(postings, grams, strict=True)]
    common = reduce(np.logical_and, masks)
    located = [
        _merged(
            _word_places(shard, piece, each.among(common), region.sizes(terms)),
            runs.where(common[runs.rows]),
        )
        for piece, each, terms, runs in zip(pattern.pieces, postings, numbers, grams, strict=True)
    ]
    made = located[0]
    for gap, after in zip(pattern.gaps, located[1:], strict=True):
        made = _followed(made, after, gap)
    return made


def _word_places(shard: ShardIndex, piece: Piece, postings: Postings, sizes: Longs) -> Places:
    """Where a piece stands in words, in any order. A piece bounded on neither side stands nowhere certain."""
    owners, positions = shard.positions(postings)
    place = (postings.rows.astype(np.int64)[owners] << _ROW) | positions
    size, own = sizes[postings.terms[owners]], len(piece.text.encode())
    alone = size == own
    every = np.ones(len(place), dtype=bool)
    return Places(
        place,
        place,
        np.zeros(len(place), dtype=np.int64) if piece.starts else size - own,
        np.full(len(place), own) if piece.starts else size,
        every if piece.starts else alone,
        every if piece.ends else alone,
    )


def _mask(size: int, *rows: NDArray[np.integer]) -> Mask:
    """A byte for each row of a shard: made and joined in less time than a search of sorted rows."""
    mask = np.zeros(size, dtype=bool)
    for each in rows:
        mask[each] = True
    return mask


def _merged(words: Places, runs: Places) -> Places:
    both = Places(*(np.concatenate((getattr(words, name), getattr(runs, name))) for name in Places.__slots__))
    return both.where(np.argsort(both.start, kind="stable"))


def _followed(made: Places, after: Places, gap: int) -> Places:
    """Those that another piece follows `gap` positions behind."""
    if not len(after.start):
        return made.where(np.zeros(len(made.start), dtype=bool))
    wanted = made.end + gap
    at = np.minimum(np.searchsorted(after.start, wanted), len(after.start) - 1)
    found = after.start[at] == wanted
    first, last = made.where(found), after.where(at[found])
    return Places(first.start, last.end, first.head, last.tail, first.left, last.right)


def without_overlap(places: Places) -> Places:
    """Those that count: from left to right, each beginning where the one before it has ended."""
    start, end, head, tail = places.start, places.end, places.head, places.tail
    clash = (start[1:] < end[:-1]) | ((start[1:] == end[:-1]) & (head[1:] < tail[:-1]))
    if not clash.any():
        return places
    kept = np.ones(len(start), dtype=bool)
    suspects = np.flatnonzero(np.isin(places.rows, places.rows[1:][clash]))
    before = (-1, 0)
    for at, first, last in zip(
        suspects.tolist(), _pairs(start, head, suspects), _pairs(end, tail, suspects), strict=True
    ):
        if first < before:
            kept[at] = False
        else:
            before = last
    return places.where(kept)


def _pairs(one: Longs, other: Longs, at: Longs) -> Sequence[tuple[int, int]]:
    return list(zip(one[at].tolist(), other[at].tolist(), strict=True))
