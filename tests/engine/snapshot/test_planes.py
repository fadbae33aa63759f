"""Planes give back the block that was packed, whatever its size."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.snapshot.planes import (
    BLOCK,
    PACKED,
    count_height,
    count_planes,
    counts_of,
    height,
    integers_of,
    planes_of,
    row_planes,
    rows_of,
)

Ints = NDArray[np.uint32]
Planes = NDArray[np.uint64]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 77, BLOCK - 1, BLOCK])
@pytest.mark.parametrize("top", [2, 5, 6, 256, 257, 1_025, 1_026, 1 << 16, 1 << 24, (1 << 24) + 1, 1 << 32])
@pytest.mark.parametrize(
    ("pack", "unpack", "planes_for"),
    [(planes_of, integers_of, height), (row_planes, rows_of, height), (count_planes, counts_of, count_height)],
)
def test_planes_give_back_what_was_packed(
    size: int,
    top: int,
    pack: Callable[[Ints, int], Planes],
    unpack: Callable[[Planes, int], Ints],
    planes_for: Callable[[int], int],
) -> None:
    values = np.random.default_rng(size).integers(1, top, size, dtype=np.uint32)
    values[-1] = top - 1
    planes = pack(values, planes_for(top - 1))
    assert planes.shape == (planes_for(top - 1), -(-size // PACKED))
    assert np.array_equal(unpack(planes, size), values)


def test_so_many_planes_are_kept_as_the_greatest_integer_needs() -> None:
    assert [height(n) for n in (0, 1, 255, 256, 65_535, 65_536, (1 << 32) - 1)] == [1, 1, 1, 2, 2, 3, 4]
    assert [count_height(n) for n in (1, 4, 5, 1_024, 1_025)] == [1, 1, 2, 2, 3]
