"""Planes give back the block that was packed, whatever its size."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.snapshot.planes import (
    BLOCK,
    COUNT_PLANES,
    PACKED,
    PLANES,
    count_planes,
    counts_of,
    integers_of,
    planes_of,
    row_planes,
    rows_of,
)

Ints = NDArray[np.uint32]
Planes = NDArray[np.uint64]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 77, BLOCK - 1, BLOCK])
@pytest.mark.parametrize("top", [2, 300, 1 << 32])
@pytest.mark.parametrize(
    ("pack", "unpack", "height"),
    [
        (planes_of, integers_of, PLANES),
        (row_planes, rows_of, PLANES),
        (count_planes, counts_of, COUNT_PLANES),
    ],
)
def test_planes_give_back_what_was_packed(
    size: int, top: int, pack: Callable[[Ints], Planes], unpack: Callable[[Planes, int], Ints], height: int
) -> None:
    values = np.random.default_rng(size).integers(1, top, size, dtype=np.uint32)
    planes = pack(values)
    assert planes.shape == (height, -(-size // PACKED))
    assert np.array_equal(unpack(planes, size), values)
