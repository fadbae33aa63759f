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

__all__ = ["INSIDE", "K1", "PREFIX", "TENTHS", "TOPIC", "WHOLE", "B", "Scored", "bm25"]

K1 = 1.2
B = 0.75

TENTHS = 10
"""Weights of occurrences are integers, in tenths: sums of them are exact in whatever order they are made."""
WHOLE = 10
"""Weight of an occurrence that is a whole word, or stands between edges of words."""
PREFIX = 7
"""Of one that begins a word: most inflections."""
INSIDE = 4
"""Of one inside a word: often chance."""
TOPIC = 2
"""A subject line says what a message is about: its occurrences count so often."""


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
        idf = np.log1p((size - term.document_frequency + 0.5) / (term.document_frequency + 0.5))
        scores += idf * term.frequencies * (K1 + 1) / (term.frequencies + norm)
    return scores
