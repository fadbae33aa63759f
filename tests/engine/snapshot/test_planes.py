"""Planes give back what was packed, block by block, whatever its size."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.snapshot.planes import (
    BLOCK,
    PACKED,
    packed,
    packed_counts,
    packed_rows,
    unpacked,
    unpacked_counts,
    unpacked_rows,
)

Ints = NDArray[np.uint32]
Planes = list[NDArray[np.uint64]]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 77])
@pytest.mark.parametrize("top", [2, 300, 1 << 32])
@pytest.mark.parametrize(
    ("pack", "unpack"),
    [(packed, unpacked), (packed_rows, unpacked_rows), (packed_counts, unpacked_counts)],
)
def test_blocks_give_back_what_was_packed(
    size: int, top: int, pack: Callable[[Ints], Planes], unpack: Callable[[Planes, int], Ints]
) -> None:
    values = np.random.default_rng(size).integers(1, top, size, dtype=np.uint32)
    planes = pack(values)
    assert {len(plane) for plane in planes} == {-(-size // PACKED)}
    group = BLOCK // PACKED
    for block in range(-(-size // BLOCK)):
        part = values[block * BLOCK : (block + 1) * BLOCK]
        found = unpack([plane[block * group : (block + 1) * group] for plane in planes], len(part))
        assert np.array_equal(found, part)
