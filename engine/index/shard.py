"""The index of one shard: postings and positions of its terms by ranges, from blocks decoded on demand.

The layout is documented at its writer, `engine.snapshot.lexicon`. Rows count within the shard. Must never know queries.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.errors import BrokenSnapshot
from engine.index.blocks import Arrays, BlockCache, Key
from engine.index.lexicon import Region
from engine.snapshot.format import LexiconEntry
from engine.snapshot.planes import PACKED, counts_of, integers_of, rows_of
from engine.snapshot.statements import Statements

__all__ = ["GRAMS", "REGIONS", "WORDS", "Listed", "Postings", "ShardFiles", "ShardIndex"]

Ints = NDArray[np.uint32]
Longs = NDArray[np.int64]

WORDS, GRAMS = (0, 1), (2, 3)
"""Regions of the body and of the topic."""
REGIONS = 4

_SLICES = 256
"""Up to so many ranges are cut one by one, more are gathered by their indices."""


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """Where one shard's index lies, and what its rows are."""

    terms: str
    postings: str
    positions: str
    entry: LexiconEntry
    first_row: int
    rows: int


@dataclass(frozen=True, slots=True)
class Postings:
    """Some postings of several terms, one after another: places in the file, rows, frequencies, which of the terms."""

    places: Longs
    rows: Ints
    frequencies: Ints
    terms: Longs


@dataclass(frozen=True, slots=True)
class Listed:
    """All postings of several terms, one term after another; `starts` are the places of the first of each.

    Places and terms are told of those that are wanted: of two common words few stand side by side.
    """

    starts: Longs
    sizes: Longs
    rows: Ints
    frequencies: Ints

    def among(self, rows: NDArray[np.bool_]) -> Postings:
        """Those in the rows that a mask holds."""
        kept = np.flatnonzero(rows[self.rows])
        ends = np.cumsum(self.sizes)
        terms = np.searchsorted(ends, kept, side="right")
        places = kept + (self.starts - (ends - self.sizes))[terms]
        return Postings(places, self.rows[kept], self.frequencies[kept], terms)

    def all(self) -> Postings:
        """All of them."""
        terms = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return Postings(_spread_out(self.starts, self.sizes), self.rows, self.frequencies, terms)


@dataclass(frozen=True, slots=True)
class _Terms:
    """The lexicon: its regions, the number of each one's first term, where postings begin; sizes of the other files."""

    regions: tuple[Region, ...]
    firsts: tuple[int, ...]
    offsets: Longs
    postings: int
    positions: int


class ShardIndex:
    """One shard; its terms are read on first use."""

    def __init__(self, files: ShardFiles, statements: Statements, cache: BlockCache) -> None:
        self.files = files
        self._statements = statements
        self._cache = cache

    @cached_property
    def _terms(self) -> _Terms:
        regions = dict(
            self._statements.rows(
                "SELECT region, string_agg(term, chr(10) ORDER BY file_row_number)"
                " FROM read_parquet(?, file_row_number = true) GROUP BY region",
                [self.files.terms],
            )
        )
        read = self._statements.arrays("SELECT df, total FROM read_parquet(?)", [self.files.terms])
        offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(read["df"], dtype=np.int64)))
        texts = [f"\n{regions[number]}\n".encode() if number in regions else b"\n" for number in range(REGIONS)]
        made = tuple(map(Region, texts))
        firsts = np.cumsum([0, *map(len, made)]).tolist()
        return _Terms(made, tuple(firsts[:REGIONS]), offsets, int(offsets[-1]), int(read["total"].sum(dtype=np.int64)))

    def region(self, number: int) -> Region:
        """One region of the lexicon."""
        return self._terms.regions[number]

    def document_frequencies(self, region: int, numbers: Longs) -> Longs:
        """In how many rows each of a region's terms occurs."""
        places = numbers + self._terms.firsts[region]
        offsets = self._terms.offsets
        counts: Longs = offsets[places + 1] - offsets[places]
        return counts

    def rows_of(self, region: int, numbers: Longs) -> Ints:
        """Rows of terms, given ascending, term after term."""
        return self._gather(region, numbers, 0)

    def frequencies_of(self, region: int, numbers: Longs) -> Ints:
        """Frequencies of terms, in the order of `rows_of`."""
        return self._gather(region, numbers, 1)

    def postings(self, region: int, numbers: Longs) -> Listed:
        """Everything about the postings of terms."""
        starts, sizes = self._ranges(region, numbers)
        return Listed(starts, sizes, self._gather(region, numbers, 0), self._gather(region, numbers, 1))

    def positions(self, postings: Postings) -> tuple[Longs, Longs]:
        """For every occurrence of some postings the index of its posting, and its position."""
        if not len(postings.places):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        block = self.files.entry.block
        blocks = postings.places // block
        starts = np.empty(len(blocks), dtype=np.int64)
        order = np.argsort(blocks, kind="stable")
        values, heads = np.unique(blocks[order], return_index=True)
        sums = self._running_sums(values)
        for value, group in zip(values.tolist(), np.split(order, heads[1:]), strict=True):
            before = sums[value]
            starts[group] = self.files.entry.positions[value] + before[postings.places[group] - value * block]
        places = _spread_out(starts, postings.frequencies)
        owners = np.repeat(np.arange(len(blocks)), postings.frequencies)
        return owners, _summed_within(self._positions_at(places), postings.frequencies)

    def _positions_at(self, places: Longs) -> Longs:
        out = np.empty(len(places), dtype=np.int64)
        blocks = places // self.files.entry.block
        order = np.argsort(blocks, kind="stable")
        values, heads = np.unique(blocks[order], return_index=True)
        keys: list[Key] = [(self.files.positions, value) for value in values.tolist()]
        loaded = self._cache.get(keys, self._load_positions)
        for key, value, group in zip(keys, values.tolist(), np.split(order, heads[1:]), strict=True):
            out[group] = loaded[key][0][places[group] - value * self.files.entry.block]
        return out

    def _ranges(self, region: int, numbers: Longs) -> tuple[Longs, Longs]:
        terms = self._terms
        places = numbers + terms.firsts[region]
        starts = terms.offsets[places]
        return starts, terms.offsets[places + 1] - starts

    def _gather(self, region: int, numbers: Longs, column: int) -> Ints:
        starts, sizes = self._ranges(region, numbers)
        total = int(sizes.sum())
        if not total:
            return np.zeros(0, dtype=np.uint32)
        block = self.files.entry.block
        if len(numbers) > _SLICES:
            places = _spread_out(starts, sizes)
            values = np.arange(places[0] // block, places[-1] // block + 1)
            cuts = np.append(np.searchsorted(places, values * block), total)
            held = cuts[1:] > cuts[:-1]
            loaded = self._blocks(values[held])
            gathered = np.empty(total, dtype=np.uint32)
            for value, first, end in zip(
                values[held].tolist(), cuts[:-1][held].tolist(), cuts[1:][held].tolist(), strict=True
            ):
                gathered[first:end] = loaded[value][column][places[first:end] - value * block]
            return gathered
        ranges = [
            (value, max(start, value * block), min(end, (value + 1) * block))
            for start, end in zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
            for value in range(start // block, (end - 1) // block + 1)
        ]
        loaded = self._blocks(np.array([value for value, _, _ in ranges]))
        cut = [loaded[value][column][start - value * block : end - value * block] for value, start, end in ranges]
        return (cut[0] if len(cut) == 1 else np.concatenate(cut)).astype(np.uint32, copy=False)

    def _blocks(self, values: Longs) -> dict[int, Arrays]:
        keys: list[Key] = [(self.files.postings, value) for value in dict.fromkeys(values.tolist())]
        found = self._cache.get(keys, self._load_postings)
        return {key[1]: block for key, block in found.items()}

    def _running_sums(self, values: Longs) -> dict[int, NDArray[np.integer]]:
        """For each posting of these blocks how many positions those before it in the block have: for phrases alone."""
        blocks = self._blocks(values)

        def load(key: Key) -> Arrays:
            tf = blocks[key[1]][1]
            return (np.cumsum(tf, dtype=np.uint32) - tf,)

        keys: list[Key] = [(f"{self.files.postings}:sums", value) for value in blocks]
        return {key[1]: block[0] for key, block in self._cache.get(keys, load).items()}

    def _load_postings(self, key: Key) -> Arrays:
        rows, frequencies, _ = self.files.entry.planes
        size, planes = self._read(key, rows + frequencies, self._terms.postings)
        decoded = rows_of(planes[:rows], size)
        if decoded.max() >= self.files.rows:
            raise BrokenSnapshot("snapshot_broken", "a file of the index names rows that the snapshot has not")
        return decoded, _narrow(counts_of(planes[rows:], size))

    def _load_positions(self, key: Key) -> Arrays:
        size, planes = self._read(key, self.files.entry.planes[2], self._terms.positions)
        return (_narrow(integers_of(planes, size)),)

    def _read(self, key: Key, height: int, total: int) -> tuple[int, NDArray[np.uint64]]:
        """How many integers a block holds, of so many in the file, and its planes."""
        location, value = key
        block = self.files.entry.block
        size = min(block, total - value * block)
        wide = -(-size // PACKED)
        first = value * height * block // PACKED
        found = self._statements.arrays(
            "SELECT planes FROM read_parquet(?, file_row_number = true)"
            " WHERE file_row_number >= ? AND file_row_number < ?",
            [location, first, first + height * wide],
        )
        if size <= 0 or len(found["planes"]) != height * wide:
            raise BrokenSnapshot("snapshot_broken", "a file of the index has not as many rows as its terms say")
        return size, found["planes"].reshape(height, wide)


def _narrow(values: Ints) -> NDArray[np.integer]:
    """The same in a byte each, which nearly always does: a block stays for as long as there is room."""
    return values.astype(np.uint8) if values.max() < 256 else values


def _spread_out(starts: Longs, sizes: NDArray[np.integer]) -> Longs:
    """The integers of all ranges [start, start + size), one range after another."""
    sizes = sizes.astype(np.int64)
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    out: Longs = np.arange(total) + np.repeat(starts - (ends - sizes), sizes)
    return out


def _summed_within(steps: Longs, sizes: NDArray[np.integer]) -> Longs:
    """Running sums of the steps of each group, groups of these sizes one after another."""
    sums = np.cumsum(steps)
    firsts = np.cumsum(sizes, dtype=np.int64) - sizes
    out: Longs = sums - np.repeat(sums[firsts] - steps[firsts], sizes)
    return out
