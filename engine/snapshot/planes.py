"""Integers as the index files keep them: byte by byte in planes, eight to a value, so that zstd sees like beside like.

A block of integers becomes one array of bytes for each of their bytes, the lowest first, as many as the greatest
integer of a file needs. Rows are kept as differences within a block. Frequencies are small: two bits of each stand in
a plane of their own, four to a byte. The planes of a block stand one behind another in one column, and make one row
group of it: several columns would take a footer that is fetched twice, and three times as long to read. Measured
against Parquet's own encodings in docs/decisions.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BLOCK",
    "PACKED",
    "count_height",
    "count_planes",
    "counts_of",
    "height",
    "integers_of",
    "planes_of",
    "row_planes",
    "rows_of",
]

BLOCK = 262_144
"""Integers decoded at a time. Half of it takes twice as many requests for the postings of rare words, which lie near
each other; a multiple of 2,048 in planes, as all of DuckDB's row groups are."""

PACKED = 8
"""Bytes in one value of a plane."""

_BYTES = 4
_LOW_BITS = 2

Ints = NDArray[np.uint32]
Planes = NDArray[np.uint64]
"""One block: a row for each plane."""


def height(greatest: int) -> int:
    """How many planes integers or rows up to this one take."""
    return max(1, -(-int(greatest).bit_length() // 8))


def count_height(greatest: int) -> int:
    """How many planes frequencies up to this one take."""
    return 1 + -(-int(greatest - 1 >> _LOW_BITS).bit_length() // 8)


def planes_of(values: Ints, height: int) -> Planes:
    """So many planes of a block of integers; the last value of each is filled up with zeros."""
    padded = np.zeros(-(-len(values) // PACKED) * PACKED, dtype="<u4")
    padded[: len(values)] = values
    planes: Planes = np.ascontiguousarray(padded.view(np.uint8).reshape(-1, _BYTES)[:, :height].T).view("<u8")
    return planes


def integers_of(planes: Planes, size: int) -> Ints:
    """The first `size` integers of a block."""
    out: Ints = planes[0].view(np.uint8)[:size].astype(np.uint32)
    for place, plane in enumerate(planes[1:], 1):
        if plane.any():
            out |= plane.view(np.uint8)[:size].astype(np.uint32) << np.uint32(8 * place)
    return out


def row_planes(rows: Ints, height: int) -> Planes:
    """So many planes of a block of rows that mostly rise: of the differences, modulo what the planes hold."""
    steps: Ints = np.diff(rows, prepend=np.uint32(0))
    return planes_of(steps, height)


def rows_of(planes: Planes, size: int) -> Ints:
    """The rows of a block."""
    rows: Ints = np.cumsum(integers_of(planes, size), dtype=np.uint32)
    if len(planes) < _BYTES:
        rows &= np.uint32((1 << 8 * len(planes)) - 1)
    return rows


def count_planes(counts: Ints, height: int) -> Planes:
    """So many planes of a block of integers from 1 on: low two bits of each less one, four to a byte; then the rest."""
    less = counts - np.uint32(1)
    rest = planes_of(less >> np.uint32(_LOW_BITS), height - 1)
    wide = -(-len(counts) // PACKED)
    quads = np.zeros((wide * PACKED // 4, 4), dtype=np.uint8)
    quads.reshape(-1)[: len(less)] = less & np.uint32(3)
    # A quarter of the room; the rest stays zero, which costs nothing.
    low = np.zeros(wide, dtype="<u8")
    low.view(np.uint8)[: len(quads)] = quads[:, 0] | quads[:, 1] << 2 | quads[:, 2] << 4 | quads[:, 3] << 6
    return np.concatenate((low[np.newaxis], rest.reshape(-1, wide)))


def counts_of(planes: Planes, size: int) -> Ints:
    """The frequencies of a block."""
    codes = planes[0].view(np.uint8)[: -(-size // 4)]
    out = np.empty((len(codes), 4), dtype=np.uint32)
    for place in range(4):
        out[:, place] = codes >> np.uint8(2 * place) & np.uint8(3)
    counts: Ints = out.reshape(-1)[:size] + np.uint32(1)
    if len(planes) > 1:
        counts += integers_of(planes[1:], size) << np.uint32(_LOW_BITS)
    return counts
