"""The distinct terms of one region as one byte string between newlines, searched by `bytes.find`.

A newline anchors the start or the end of a term, so one search serves parts, beginnings, ends and whole terms.
Must never know what a term's postings are.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Matches", "Region"]

Longs = NDArray[np.int64]

Offsets = NDArray[np.signedinteger]

_FITS = 2**31
"""Bytes whose offsets 32 bits tell, which is every lexicon there is: half the memory, a few megabytes a shard."""

_REMEMBERED = 256
"""Searches whose outcome is kept: a talk with an agent asks for the same words again."""
_REMEMBERED_OFFSETS = 4_096
"""What is found more often is not kept: 256 searches hold 8 MB at most."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The terms a needle occurs in, ascending; for each how often as a whole, at its start, and further inside."""

    numbers: Longs
    whole: Longs
    prefix: Longs
    inside: Longs


class Region:
    """`text` is every term in order, each with a newline before it and the last also with one behind."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        edges = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n"))
        self._edges: NDArray[np.signedinteger] = edges.astype(np.int32) if len(text) < _FITS else edges
        """Where the newlines are: a term begins behind its own, and ends before the next."""
        self._known: OrderedDict[bytes, Offsets] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._edges) - 1

    def term(self, number: int) -> str:
        """One term."""
        return self.text[self._edges[number] + 1 : self._edges[number + 1]].decode()

    def sizes(self, numbers: Longs) -> Longs:
        """Lengths of terms in bytes."""
        return (self._edges[numbers + 1] - self._edges[numbers] - 1).astype(np.int64)

    def find(self, needle: str, *, starts: bool = False, ends: bool = False) -> Longs:
        """The terms that start with a needle, end with it, or are it when both are set, ascending.

        Those that hold it anywhere are told by `matches`.
        """
        anchored = (b"\n" if starts else b"") + needle.encode() + (b"\n" if ends else b"")
        return self._numbers(self._offsets(anchored) + (1 if starts else 0))

    def matches(self, needle: str) -> Matches:
        """The terms that contain a needle, its occurrences counted from left to right without overlap."""
        raw = needle.encode()
        offsets = self._offsets(raw)
        numbers = self._numbers(offsets)
        at_start = offsets == self._edges[numbers] + 1
        whole = at_start & (offsets + len(raw) == self._edges[numbers + 1])
        first = np.ones(len(numbers), dtype=bool)
        first[1:] = numbers[1:] != numbers[:-1]
        heads = np.flatnonzero(first)
        counts = np.diff(heads, append=len(numbers))
        whole_heads, start_heads = whole[heads], at_start[heads]
        return Matches(
            numbers[heads],
            whole_heads.astype(np.int64),
            (start_heads & ~whole_heads).astype(np.int64),
            counts - start_heads,
        )

    def _offsets(self, needle: bytes) -> Offsets:
        with self._lock:
            if needle in self._known:
                self._known.move_to_end(needle)
                return self._known[needle]
        offsets = self._search(needle)
        if len(offsets) <= _REMEMBERED_OFFSETS:
            with self._lock:
                self._known[needle] = offsets
                while len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
        return offsets

    def _search(self, needle: bytes) -> Offsets:
        find, step, out = self.text.find, max(1, len(needle.strip(b"\n"))), []
        at = find(needle)
        while at >= 0:
            out.append(at)
            at = find(needle, at + step)
        return np.array(out, dtype=self._edges.dtype)

    def _numbers(self, offsets: Offsets) -> Longs:
        # Of one type with the edges, which are else copied for each search.
        return np.searchsorted(self._edges, offsets, side="left") - 1
