"""Words as small numbers: equal words get equal numbers, however long they are, without a Python object for each.

A word is spelt in pieces of eight bytes. A piece is an integer, and a table of integers gives it a number; what is
longer is the number of its beginning and the number of its next piece, and so an integer again. So no two words are
ever taken for one another, and words of up to eight bytes, nine tenths of all, cost one look-up. Must never know what
a word is, nor where it stands.
"""

import threading

import numpy as np
from numpy.typing import NDArray

from engine.snapshot.letters import Bytes

__all__ = ["Interned"]

Ints = NDArray[np.uint32]
Keys = NDArray[np.uint64]
Longs = NDArray[np.int64]

_PIECE = 8
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(_PIECE + 1)], dtype=np.uint64)
"""What of eight bytes, the first one lowest, belongs to a piece of so many."""

_LONGEST = 64
"""Longer words are few, and go through a dictionary: piece by piece the longest would hold up all others."""

_FIRST_BITS = 12
_PIECES, _PAIRS, _GRAMS = range(3)

_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFF_FFFF)
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)
"""2**64 divided by the golden ratio: the product's high bits depend on all of a key's (Knuth, volume 3, 6.4)."""


class Interned:
    """Numbers from 0 on, in the order words were met; a number may belong to no word but to how others begin.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables = [_Table() for _ in range(3)]
        self._met: list[tuple[int, int, Keys]] = []
        self._long: dict[bytes, int] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def words(self, raw: Bytes, starts: Longs, sizes: Longs) -> Ints:
        """Numbers of the words at these bytes, of these sizes; eight bytes more can be read behind each."""
        # Eight bytes from any place on as one integer.
        eights = np.ndarray((len(raw) - _PIECE + 1,), dtype="<u8", buffer=raw, strides=(1,))
        first = eights[starts]
        first &= _MASKS[np.minimum(sizes, _PIECE)]
        with self._lock:
            numbers = self._of(_PIECES, first)
            left = np.flatnonzero((sizes > _PIECE) & (sizes <= _LONGEST))
            place = starts[left]
            size = sizes[left]
            while len(left):
                place, size = place + _PIECE, size - _PIECE
                piece = self._of(_PIECES, eights[place] & _MASKS[np.minimum(size, _PIECE)])
                numbers[left] = self._of(_PAIRS, _paired(numbers[left], piece))
                more = size > _PIECE
                left, place, size = left[more], place[more], size[more]
            for at in np.flatnonzero(sizes > _LONGEST).tolist():
                word = raw[starts[at] : starts[at] + sizes[at]].tobytes()
                number = self._long.setdefault(word, self._size)
                self._size += number == self._size
                numbers[at] = number
        return numbers

    def grams(self, first: Ints, second: Ints) -> Ints:
        """Numbers of pairs of characters, each given by its code point."""
        with self._lock:
            return self._of(_GRAMS, _paired(first, second))

    def spelt(self, numbers: Longs) -> list[str]:
        """The words and pairs of these numbers."""
        spelt: list[bytes] = [b""] * self._size
        for word, number in self._long.items():
            spelt[number] = word
        # In the order they were met: how a word begins was met before it.
        for table, first, keys in self._met:
            if table == _PIECES:
                spelt[first : first + len(keys)] = keys.astype("<u8").view(f"S{_PIECE}").tolist()
                continue
            before, after = ((keys >> _HALF) - np.uint64(1)).tolist(), (keys & _LOWER).tolist()
            if table == _PAIRS:
                for at, one, other in zip(range(first, first + len(keys)), before, after, strict=True):
                    spelt[at] = spelt[one] + spelt[other]
            else:
                grams = [(chr(one) + chr(other)).encode() for one, other in zip(before, after, strict=True)]
                spelt[first : first + len(keys)] = grams
        return [spelt[number].decode() for number in numbers.tolist()]

    def _of(self, table: int, keys: Keys) -> Ints:
        known = self._tables[table]
        numbers, missing = known.find(keys)
        if len(missing):
            fresh, which = np.unique(keys[missing], return_inverse=True)
            added = np.arange(self._size, self._size + len(fresh), dtype=np.uint32)
            known.add(fresh, added)
            self._met.append((table, self._size, fresh))
            self._size += len(fresh)
            numbers[missing] = added[which]
        return numbers


def _paired(one: Ints, other: Ints) -> Keys:
    """Both as one integer, which is never 0."""
    return (one.astype(np.uint64) + np.uint64(1)) << _HALF | other


class _Table:
    """Numbers of 64-bit keys but 0: hashed, the next free place taken (Knuth, volume 3, 6.4, algorithm L)."""

    def __init__(self) -> None:
        self._size = 0
        self._bits = _FIRST_BITS
        self._keys = np.zeros(1 << self._bits, dtype=np.uint64)
        self._numbers = np.zeros(1 << self._bits, dtype=np.uint32)

    def find(self, keys: Keys) -> tuple[Ints, Longs]:
        """The number of each key, and where there are keys that have none yet."""
        places = self._places(keys)
        numbers = self._numbers[places]
        left = np.flatnonzero(self._keys[places] != keys)
        places, keys = places[left], keys[left]
        missing = []
        while len(left):
            there = self._keys[places]
            hit, free = there == keys, there == 0
            numbers[left[hit]] = self._numbers[places[hit]]
            missing.append(left[free])
            on = ~(hit | free)
            left, keys, places = left[on], keys[on], (places[on] + 1) & (len(self._keys) - 1)
        return numbers, np.concatenate(missing) if missing else np.zeros(0, dtype=np.int64)

    def add(self, keys: Keys, numbers: Ints) -> None:
        """Give keys, all different and new, their numbers."""
        self._size += len(keys)
        if 2 * self._size > len(self._keys):
            kept = self._keys != 0
            keys, numbers = np.append(keys, self._keys[kept]), np.append(numbers, self._numbers[kept])
            self._bits = (2 * self._size - 1).bit_length()
            self._keys = np.zeros(1 << self._bits, dtype=np.uint64)
            self._numbers = np.zeros(1 << self._bits, dtype=np.uint32)
        places = self._places(keys)
        while len(keys):
            free = self._keys[places] == 0
            # Of several that want one place the last to be written has it.
            self._keys[places[free]] = keys[free]
            there = self._keys[places] == keys
            self._numbers[places[there]] = numbers[there]
            keys, numbers, places = keys[~there], numbers[~there], (places[~there] + 1) & (len(self._keys) - 1)

    def _places(self, keys: Keys) -> Longs:
        return ((keys * _SPREAD) >> np.uint64(64 - self._bits)).astype(np.int64)
