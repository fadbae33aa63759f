"""Integers as the index files keep them: byte by byte in planes, eight to a value, so that zstd sees like beside like.

A block of whole numbers becomes one array of bytes for each of their bytes, the lowest first; the higher planes are
nearly all zeros and cost nothing. Rows are kept as differences within a block. Frequencies are small: two bits of
each stand in a plane of their own, four to a byte. Measured against Parquet's own encodings in docs/decisions.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BLOCK",
    "PACKED",
    "PLANES",
    "packed",
    "packed_counts",
    "packed_rows",
    "unpacked",
    "unpacked_counts",
    "unpacked_rows",
]

BLOCK = 131_072
"""Integers decoded at a time: a row group of 16,384 packed values, and DuckDB's groups are multiples of 2,048."""

PACKED = 8
"""Bytes in one value of a plane."""

PLANES = 4

_LOW_BITS = 2

Ints = NDArray[np.uint32]
Plane = NDArray[np.uint64]


def packed(values: Ints) -> list[Plane]:
    """The planes of some integers; the last value is filled up with zeros."""
    padded = np.zeros(-(-len(values) // PACKED) * PACKED, dtype="<u4")
    padded[: len(values)] = values
    rows = padded.view(np.uint8).reshape(-1, PLANES)
    return [np.ascontiguousarray(rows[:, plane]).view("<u8") for plane in range(PLANES)]


def unpacked(planes: list[Plane], size: int) -> Ints:
    """The first `size` integers of some planes."""
    used = [(place, plane) for place, plane in enumerate(planes) if place == 0 or plane.any()]
    out = used[0][1].view(np.uint8)[:size].astype(np.uint32)
    for place, plane in used[1:]:
        out |= plane.view(np.uint8)[:size].astype(np.uint32) << np.uint32(8 * place)
    return out


def packed_rows(rows: Ints) -> list[Plane]:
    """Planes of rows that mostly rise: of the differences, modulo 2**32, each block beginning anew."""
    steps = np.empty_like(rows)
    np.subtract(rows[1:], rows[:-1], out=steps[1:])
    steps[::BLOCK] = rows[::BLOCK]
    return packed(steps)


def unpacked_rows(planes: list[Plane], size: int) -> Ints:
    """The rows of one block."""
    return np.cumsum(unpacked(planes, size), dtype=np.uint32)


def packed_counts(values: Ints) -> list[Plane]:
    """Planes of small integers from 1 on: the low two bits of each less one, four to a byte; then the rest."""
    less = values - np.uint32(1)
    rest = packed(less >> np.uint32(_LOW_BITS))
    low = np.zeros(len(rest[0]), dtype="<u8")
    for first in range(0, len(less), BLOCK):
        quads = np.zeros((BLOCK // 4, 4), dtype=np.uint8)
        part = less[first : first + BLOCK]
        quads.reshape(-1)[: len(part)] = part & np.uint32(3)
        codes = quads[:, 0] | quads[:, 1] << 2 | quads[:, 2] << 4 | quads[:, 3] << 6
        place = low[first // PACKED : first // PACKED + BLOCK // PACKED]
        # A quarter of the room; the rest stays zero, which costs nothing.
        place[:] = (
            codes.view("<u8")[: len(place)]
            if len(place) < BLOCK // 4 // PACKED
            else np.append(codes.view("<u8"), np.zeros(len(place) - BLOCK // 4 // PACKED, dtype="<u8"))
        )
    return [low, *rest]


def unpacked_counts(planes: list[Plane], size: int) -> Ints:
    """The integers of one block."""
    codes = planes[0].view(np.uint8)[: -(-size // 4)]
    out = np.empty((len(codes), 4), dtype=np.uint32)
    for place in range(4):
        out[:, place] = codes >> np.uint8(2 * place) & np.uint8(3)
    counts: Ints = out.reshape(-1)[:size] + np.uint32(1)
    if any(plane.any() for plane in planes[1:]):
        counts += unpacked(planes[1:], size) << np.uint32(_LOW_BITS)
    return counts
