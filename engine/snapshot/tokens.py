"""Texts split into words and bigrams with their places: the occurrences that an index lists.

Decides what a word is and which position it takes, as `engine.snapshot.lexicon` documents it. Many texts at once, as
arrays of bytes. Must never know the order of terms, nor files.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.snapshot.interned import Interned
from engine.snapshot.letters import UNSPACED, Bytes, Letters, code_points

__all__ = ["Tokens", "tokens_of", "word_counts"]

Ints = NDArray[np.uint32]
Longs = NDArray[np.int64]

_SPACE = 0x20


@dataclass(frozen=True, slots=True)
class Tokens:
    """Occurrences in order of row and position: the number of the term, the text it is in, its position there.

    Texts count from 0, the one of `first_row`. There are as many of these as an index has occurrences, until the last
    text has been split: so both are kept in two bytes, positions as long as these tell them.
    """

    first_row: int
    number: Ints
    text: NDArray[np.uint16]
    position: NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class _Runs:
    """Maximal runs of word characters: first byte, byte behind, text; of each text its first byte, first run, runs."""

    starts: Longs
    ends: Longs
    texts: Longs
    heads: Longs
    firsts: Longs
    counts: Longs


def word_counts(raw: Bytes, texts: int, letters: Letters) -> NDArray[np.uint32]:
    """How many words each of so many texts has, at least one text."""
    inside = letters.kinds(raw) != 0
    begins = inside.copy()
    begins[1:] &= ~inside[:-1]
    heads = np.zeros(texts, dtype=np.int64)
    heads[1:] = np.flatnonzero(raw == 0)[: texts - 1] + 1
    counts: NDArray[np.uint32] = np.add.reduceat(begins, heads, dtype=np.uint32)
    return counts


def tokens_of(raw: Bytes, texts: int, first_row: int, letters: Letters, interned: Interned) -> tuple[Tokens, Tokens]:
    """The words of so many texts, at most 65,536, and the bigrams of their runs without spaces; the first is that of
    `first_row`.
    """
    kinds = letters.kinds(raw)
    runs = _runs(raw, kinds, texts)
    unspaced = np.zeros(len(runs.starts), dtype=bool)
    unspaced[np.searchsorted(runs.starts, np.flatnonzero(kinds == UNSPACED), side="right") - 1] = True
    which = np.flatnonzero(unspaced)
    grams = _Grams(raw, runs.starts[which], runs.ends[which])
    positions = _positions(raw, runs, which, grams.widths)
    within = runs.texts.astype(np.uint16)
    spaced = slice(None) if not len(which) else ~unspaced
    starts = runs.starts[spaced]
    numbers = interned.words(raw, starts, runs.ends[spaced] - starts)
    words = Tokens(first_row, numbers, within[spaced], _narrow(positions[spaced]))
    return words, grams.tokens(first_row, within[which], positions[which], interned)


def _narrow(positions: Ints) -> NDArray[np.unsignedinteger]:
    return positions.astype(np.uint16) if positions.max(initial=0) < 1 << 16 else positions


def _runs(raw: Bytes, kinds: Bytes, texts: int) -> _Runs:
    inside = np.zeros(len(kinds) + 1, dtype=bool)
    np.not_equal(kinds, 0, out=inside[1:])
    # The first byte is preceded, the last one followed by none: borders come in pairs.
    borders = np.flatnonzero(inside[1:] != inside[:-1])
    starts, ends = borders[0::2], borders[1::2]
    behind = np.flatnonzero(raw == 0)[:texts]
    heads = np.zeros(texts, dtype=np.int64)
    heads[1:] = behind[:-1] + 1
    cuts = np.searchsorted(starts, behind)
    firsts = np.zeros(texts, dtype=np.int64)
    firsts[1:] = cuts[:-1]
    counts = cuts - firsts
    return _Runs(starts, ends, np.repeat(np.arange(texts), counts), heads, firsts, counts)


def _positions(raw: Bytes, runs: _Runs, unspaced: Longs, widths: Longs) -> Ints:
    """Positions within the texts; a run without spaces takes one for each character beside its own."""
    some = np.flatnonzero(runs.counts)
    firsts = runs.firsts[some]
    before = np.empty(len(runs.starts), dtype=np.int64)
    before[1:] = runs.ends[:-1]
    before[firsts] = runs.heads[some]
    gaps = runs.starts - before
    steps = np.full(len(gaps), 2, dtype=np.uint32)
    steps[(gaps == 1) & (raw[before] == _SPACE)] = 1
    steps[gaps == 0] = 0
    follows = unspaced + 1
    inner = np.ones(len(steps) + 1, dtype=bool)
    inner[firsts] = False
    inner[-1] = False
    kept = inner[follows]
    steps[follows[kept]] += widths[kept].astype(np.uint32)
    sums = np.cumsum(steps, dtype=np.uint32)
    positions: Ints = sums - np.repeat(sums[firsts] - steps[firsts], runs.counts[some])
    return positions


class _Grams:
    """The characters of some runs, a blank before the first and behind the last of each."""

    def __init__(self, raw: Bytes, starts: Longs, ends: Longs) -> None:
        sizes = ends - starts
        places = np.arange(int(sizes.sum())) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        leads = (raw[places] & 0xC0) != 0x80
        owners = np.repeat(np.arange(len(starts)), sizes)[leads]
        self.widths: Longs = np.bincount(owners, minlength=len(starts))
        """Characters of each run."""
        self._points = np.full(len(owners) + 2 * len(starts), _SPACE, dtype=np.uint32)
        self._points[np.arange(len(owners)) + 2 * owners + 1] = code_points(raw, places[leads])

    def tokens(self, first_row: int, texts: NDArray[np.uint16], positions: Ints, interned: Interned) -> Tokens:
        """Every two neighbours, given texts and positions of the runs."""
        counts = self.widths + 1
        owners = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = np.arange(len(owners)) + owners
        numbers = interned.grams(self._points[places], self._points[places + 1])
        offsets = np.maximum(within - 1, 0).astype(np.uint32)
        return Tokens(first_row, numbers, texts[owners], _narrow(positions[owners] + offsets))
