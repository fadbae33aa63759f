"""The words of a region that are a few edits from a given one, found without comparing it with each.

An edit inserts, removes or replaces a character, or swaps two neighbours. Every word has a length and a signature, 64
bits of the characters in it: an edit changes either by one at most, so both rule nearly all words out. The rest is
compared exactly, all at once. Must never know what a word's postings are, nor who sees them.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.index.lexicon import Region

__all__ = ["MOST_CHARS", "Shapes", "distances"]

Longs = NDArray[np.int64]
Codes = NDArray[np.uint32]

MOST_CHARS = 32
"""A longer word is compared with none: nobody types one, and a signature of so many characters rules little out."""

_BITS = 63
_NEWLINE = ord("\n")
_MIX = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio, as in Knuth's multiplicative hashing: the upper bits depend on all bits."""


class Shapes:
    """Lengths and signatures of the words of one region. Made once, some 30 bytes for each while being made."""

    def __init__(self, region: Region) -> None:
        self._region = region
        codes = np.frombuffer(region.text.decode().encode("utf-32-le"), dtype=np.uint32)
        breaks = np.flatnonzero(codes == _NEWLINE)
        sizes = np.diff(breaks) - 1
        self._sizes = np.minimum(sizes, 255).astype(np.uint8)
        self._marks = np.zeros(len(sizes), dtype=np.uint64)
        if len(sizes):
            # A break stands at the head of each word here: its bit would be in every signature.
            bits = np.where(codes == _NEWLINE, np.uint64(0), _bits(codes))
            self._marks = np.bitwise_or.reduceat(bits[:-1], breaks[:-1])
        self._keys = _keys(self._marks)

    def near(self, word: str, most: int) -> Longs:
        """The words at one to `most` edits from `word`, ascending; `word` itself is not among them."""
        mark, size = _mark(word), len(word)
        fits = np.flatnonzero((self._sizes >= max(1, size - most)) & (self._sizes <= size + most))
        marks = self._marks[fits]
        differ = np.maximum(np.bitwise_count(marks & ~mark), np.bitwise_count(mark & ~marks))
        likely = fits[differ <= most]
        found = distances(word, [self._region.term(number) for number in likely.tolist()])
        near: Longs = likely[(found > 0) & (found <= most)]
        return near

    def places(self, words: Iterable[str]) -> dict[str, int]:
        """The number of each of these words that the region has."""
        wanted = {word for word in words if word}
        if not wanted or not len(self._keys):
            return {}
        table = np.zeros(1 << 16, dtype=bool)
        table[_keys(np.array([_mark(word) for word in wanted], dtype=np.uint64))] = True
        likely = np.flatnonzero(table[self._keys]).tolist()
        return {term: number for number in likely if (term := self._region.term(number)) in wanted}


def distances(word: str, others: Sequence[str]) -> Longs:
    """Edits from `word`, of 1 to 64 characters, to each of the others, no part of a word edited twice.

    H. Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances" (2003): a column of the
    table of distances is its differences, one bit for each character of `word`. Here one step takes all words on.
    """
    out = np.full(len(others), len(word), dtype=np.int64)
    if not others:
        return out
    held = _held(word, others)
    sizes = np.array([len(other) for other in others])
    one, last = np.uint64(1), np.uint64(len(word) - 1)
    up = np.full(len(others), (1 << len(word)) - 1, dtype=np.uint64)
    down, same, before = (np.zeros(len(others), dtype=np.uint64) for _ in range(3))
    score = out.copy()
    for place, holds in enumerate(held, 1):
        swapped = ((~same & holds) << one) & before
        same = (((holds & up) + up) ^ up) | holds | down | swapped
        rising, falling = down | ~(same | up), same & up
        score += ((rising >> last) & one).astype(np.int64)
        score -= ((falling >> last) & one).astype(np.int64)
        rising, falling = (rising << one) | one, falling << one
        up, down, before = falling | ~(same | rising), rising & same, holds
        ended = sizes == place
        out[ended] = score[ended]
    return out


def _held(word: str, others: Sequence[str]) -> NDArray[np.uint64]:
    """For each place and each of the others the bits of the characters of `word` that stand there, [place, other]."""
    bits: dict[str, int] = {}
    for place, char in enumerate(word):
        bits[char] = bits.get(char, 0) | 1 << place
    known = np.array(sorted(map(ord, bits)), dtype=np.uint32)
    values = np.array([bits[chr(code)] for code in known.tolist()], dtype=np.uint64)
    widest = max(map(len, others))
    padded = "".join(other.ljust(widest, "\n") for other in others)
    codes = np.frombuffer(padded.encode("utf-32-le"), dtype=np.uint32).reshape(len(others), widest).T
    at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[at] == codes, values[at], np.uint64(0))


def _bits(codes: Codes) -> NDArray[np.uint64]:
    """One of 64 bits for each character: letters of one script lie side by side, so they share few."""
    return np.uint64(1) << (codes & _BITS).astype(np.uint64)


def _mark(word: str) -> np.uint64:
    codes = np.frombuffer(word.encode("utf-32-le"), dtype=np.uint32)
    return np.uint64(np.bitwise_or.reduce(_bits(codes)))


def _keys(marks: NDArray[np.uint64]) -> NDArray[np.uint16]:
    return ((marks * _MIX) >> np.uint64(48)).astype(np.uint16)
