"""Blocks stay in memory up to a bound, the one unused longest goes first; one that came meanwhile is kept once."""

import numpy as np

from engine.index.blocks import Arrays, BlockCache, Key


def block(key: Key) -> Arrays:
    return (np.full(250, key[1], dtype=np.uint32),)


def keys(*numbers: int) -> list[Key]:
    return [("file", number) for number in numbers]


def test_the_block_unused_longest_is_let_go_first() -> None:
    cache = BlockCache(3_000)
    read: list[int] = []

    def load(key: Key) -> Arrays:
        read.append(key[1])
        return block(key)

    for numbers in ((1,), (2,), (3,), (1,), (4,), (1, 3, 4), (2,)):
        got = cache.get(keys(*numbers), load)
        assert {key[1]: int(arrays[0][0]) for key, arrays in got.items()} == {n: n for n in numbers}
    assert read == [1, 2, 3, 4, 2]


def test_a_block_larger_than_the_bound_is_answered_all_the_same() -> None:
    cache = BlockCache(10)
    assert [len(cache.get(keys(n), block)) for n in (1, 2)] == [1, 1]


def test_a_block_that_another_call_read_meanwhile_counts_once() -> None:
    cache = BlockCache(2_000)

    def load(key: Key) -> Arrays:
        if key[1] == 1:
            cache.get(keys(1), block)
        return block(key)

    cache.get(keys(1), load)
    cache.get(keys(2), block)
    # Were the first counted twice, there would have been no room for both.
    kept = cache.get(keys(1, 2), lambda _: (np.zeros(1, dtype=np.uint32),))
    assert [len(arrays[0]) for arrays in kept.values()] == [250, 250]
