"""How well each hit answers: BM25 over exact weighted term frequencies. Arrays in, scores out.

    score = sum over terms of idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / average))
    idf   = ln(1 + (N - df + 0.5) / (df + 0.5))

after Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3, with
the idf that never falls below zero. `f` weighs each occurrence by how it stands in its word. Must never know texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["INSIDE", "K1", "PREFIX", "TENTHS", "TIER", "TOPIC", "WHOLE", "B", "Scored", "bm25", "held", "tiers"]

K1 = 1.2
B = 0.75

TENTHS = 10
"""Weights of occurrences are integers, in tenths: sums of them are exact in whatever order they are made."""
WHOLE = 10
"""Weight of an occurrence that is a whole word, or stands between edges of words."""
PREFIX = 5
"""Of one that begins a word: most inflections."""
INSIDE = 1
"""Of one inside a word: often chance."""
TOPIC = 2
"""A subject line says what a message is about: its occurrences count so often."""

TIER = 0.75
"""Alternatives differ in what they tell: a hit that holds less than this share of the best one waits, however many
conversations have not had their turn. docs/ranking.md tells what that is worth."""
_TIERS = 16
"""The last tier: what holds a hundredth or less."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One term: its weighted frequency in each hit, and how many messages in sight it occurs in."""

    frequencies: NDArray[np.float64]
    document_frequency: int


def bm25(terms: Sequence[Scored], lengths: NDArray[np.float64], average: float, size: int) -> NDArray[np.float64]:
    """The score of each hit; zeros without terms.

    `lengths` are the hits' lengths in words, `average` the mean and `size` the number over all messages in sight.
    """
    scores = np.zeros(len(lengths), dtype=np.float64)
    norm = K1 * (1 - B + B * lengths / average)
    for term in terms:
        scores += _idf(term, size) * term.frequencies * (K1 + 1) / (term.frequencies + norm)
    return scores


def held(terms: Sequence[Scored], hits: int, size: int) -> NDArray[np.float64]:
    """How much of a query each hit holds, whatever its length and repetitions: the sum of the idf of its terms."""
    sums = np.zeros(hits, dtype=np.float64)
    for term in terms:
        sums += np.where(term.frequencies > 0, _idf(term, size), 0)
    return sums


def tiers(sums: NDArray[np.float64]) -> NDArray[np.int8]:
    """Which tier each hit is in by what it holds, 0 the first; a tier reaches down to TIER of what its best may hold.

    All hits of a query without alternatives hold the same, and are of one tier.
    """
    most = sums.max(initial=0)
    if most and sums.min() == most:
        return np.zeros(len(sums), dtype=np.int8)
    # What holds none of the terms matched by what it lacks: one part of an OR may be a NOT.
    below = np.log(most / np.maximum(sums, most * TIER**_TIERS)) / -np.log(TIER) if most else sums
    # Rounding must not part hits that hold the same as a border.
    tier: NDArray[np.int8] = np.floor(below + 1e-9).astype(np.int8)
    return tier


def _idf(term: Scored, size: int) -> float:
    return float(np.log1p((size - term.document_frequency + 0.5) / (term.document_frequency + 0.5)))
