"""A term as the index sees it: pieces of words, how far apart, and whether that settles it.

`docker.sock pid` is the pieces `docker` (the end of a word), `sock` (a word), `pid` (the start of one), 2 and 1 apart.
Must never know a corpus.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from engine.query.tree import Term
from engine.text import fold, is_word_char

__all__ = ["Pattern", "Piece", "pattern_of"]

_SAME = 2
"""Positions between two words with anything but a single space between them."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Word characters without a break; `starts` and `ends`: no word character stands before, behind them."""

    text: str
    starts: bool
    ends: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """Pieces and the distances between neighbours. `settled`: where they stand so, the term occurs."""

    pieces: tuple[Piece, ...]
    gaps: tuple[int, ...]
    settled: bool


def pattern_of(term: Term) -> Pattern | None:
    """How to look a term up; `None` when there is no word in it, or a letter the index may not know as one."""
    text = fold(term.text)
    if not text.isascii() and any(_is_later(char) for char in text):
        return None
    spans = _spans(text)
    if not spans:
        return None
    separators = [text[end:start] for (_, end), (start, _) in pairwise(spans)]
    pieces = tuple(
        Piece(text[start:end], term.whole or start > 0, term.whole or end < len(text)) for start, end in spans
    )
    whole_span = spans[0][0] == 0 and spans[-1][1] == len(text)
    return Pattern(
        pieces,
        tuple(1 if separator == " " else _SAME for separator in separators),
        settled=whole_span and all(separator == " " for separator in separators),
    )


def _spans(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = -1
    for place, char in enumerate(text):
        if is_word_char(char):
            start = place if start < 0 else start
        elif start >= 0:
            spans.append((start, place))
            start = -1
    return [*spans, (start, len(text))] if start >= 0 else spans


_LATER = (
    *((0x558, 0x558), (0x58B, 0x58C), (0x5C8, 0x5C9), (0x88F, 0x88F), (0x897, 0x897), (0xB53, 0xB54)),
    *((0xC5C, 0xC5C), (0xCDC, 0xCDC), (0x1ACF, 0x1AF0), (0x1C89, 0x1C8A), (0x208F, 0x208F), (0x209D, 0x209F)),
    *((0xA7CB, 0xA7CF), (0xA7D2, 0xA7D2), (0xA7D4, 0xA7D4), (0xA7DA, 0xA7DD), (0xA7E2, 0xA7E2), (0xA7F1, 0xA7F1)),
    *((0xAB6C, 0xAB6D), (0x105C0, 0x105F3), (0x107BB, 0x107BF), (0x10940, 0x10959), (0x10D40, 0x10D85)),
    *((0x10EC2, 0x10EFC), (0x11380, 0x113E2), (0x116D0, 0x116E3), (0x11B0A, 0x11B0A), (0x11B60, 0x11B67)),
    *((0x11BC0, 0x11BF9), (0x11DB0, 0x11DF1), (0x11F5A, 0x11F5A), (0x1246F, 0x1246F), (0x12475, 0x1247F)),
    *((0x12550, 0x12686), (0x13460, 0x143FA), (0x16100, 0x16139), (0x16D40, 0x16D79), (0x16EA0, 0x16ED3)),
    *((0x16FF2, 0x16FF6), (0x187F8, 0x187FF), (0x18CD6, 0x18CDA), (0x18CFF, 0x18CFF), (0x18D09, 0x191D2)),
    *((0x1B123, 0x1B128), (0x1B168, 0x1B168), (0x1CCF0, 0x1CCF9), (0x1D127, 0x1D128), (0x1D250, 0x1D281)),
    *((0x1D6A6, 0x1D6A6), (0x1DF1F, 0x1DFFF), (0x1E5D0, 0x1E5FA), (0x1E6C0, 0x1E6FF), (0x2B73A, 0x2B73F)),
    *((0x2B81E, 0x2B81E), (0x2CEA2, 0x2CEAD), (0x2EBF0, 0x2EE5D), (0x323B0, 0x33479), (0x3D000, 0x3FC3F)),
)
"""Where letters were added to Unicode after the tables that the builder's database splits words by."""
_LATER_STARTS = [first for first, _ in _LATER]


def _is_later(char: str) -> bool:
    place = bisect_right(_LATER_STARTS, ord(char)) - 1
    return place >= 0 and ord(char) <= _LATER[place][1]
