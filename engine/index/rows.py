"""Sets of rows as sorted arrays: united, intersected, tested, summed over; through a mask where that is cheaper.

`size` is the number of rows there are. Must never know what the rows are of.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["intersected", "is_member", "summed", "unique"]

Longs = NDArray[np.int64]
AnyInts = NDArray[np.integer]

_SUMMED = 65_536
"""Numbers summed at a time, at least."""

_DENSE = 64
"""A mask over all rows pays from one in so many on."""


def unique(rows: AnyInts, size: int) -> Longs:
    """The distinct rows, sorted."""
    if not len(rows) or np.all(rows[1:] > rows[:-1]):
        return rows.astype(np.int64, copy=False)
    if len(rows) * _DENSE < size:
        ordered = np.sort(rows)
        first = np.ones(len(ordered), dtype=bool)
        first[1:] = ordered[1:] != ordered[:-1]
        return ordered[first].astype(np.int64, copy=False)
    mask = np.zeros(size, dtype=bool)
    mask[rows] = True
    return np.flatnonzero(mask)


def is_member(rows: AnyInts, among: Longs, size: int) -> NDArray[np.bool_]:
    """Which of `rows`, in any order, are in the sorted set `among`."""
    if len(rows) * _DENSE < size:
        places = np.searchsorted(among, rows)
        found = np.zeros(len(rows), dtype=bool)
        inside = places < len(among)
        found[inside] = among[places[inside]] == rows[inside]
        return found
    mask = np.zeros(size, dtype=bool)
    mask[among] = True
    return mask[rows]


def intersected(one: Longs, other: Longs, size: int) -> Longs:
    """Rows of two sets."""
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    return small[is_member(small, large, size)]


def summed(rows: AnyInts, values: AnyInts, over: Longs, size: int) -> Longs:
    """For each row of the sorted set `over` the sum of the values at it."""
    if len(rows) * _DENSE >= size:
        total = np.zeros(size)
        # Both are copied to be counted, as wider numbers, so not all at once.
        for first in range(0, len(rows), max(_SUMMED, size // 2)):
            part = slice(first, first + max(_SUMMED, size // 2))
            total += np.bincount(rows[part], weights=values[part], minlength=size)
        return total[over].astype(np.int64)
    kept = is_member(rows, over, size)
    places = np.searchsorted(over, rows[kept])
    return np.bincount(places, weights=values[kept], minlength=len(over)).astype(np.int64)
