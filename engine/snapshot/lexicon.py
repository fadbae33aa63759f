"""Writes the index of a shard: every distinct word with the rows and places it occurs at, in three Parquet files.

    terms       region, term, df, total     one group; by region, floor(log2(total)) falling, then term
    postings    planes                      for each term its rows in order, and frequencies; ranges follow from the dfs
    positions   planes                      for each posting its places in order, each less the one before it

Regions are `WORDS` and `GRAMS`, each of the body and of the topic. A word goes to WORDS, unless it holds a letter
of a script that sets no spaces: such a run goes to GRAMS as its bigrams, with a blank before the first and after
the last character (`容器` is ` 容`, `容器`, `器 `). A word takes one position, a run of GRAMS one for each character
and one for its end; the next one follows at once after a single space, and 1 further on after anything else. So a
phrase is a chain of neighbours, and a term inside a run a chain of bigrams that never leaves the run.

What `planes` are tells `engine.snapshot.planes`: of postings each block has those of its rows, then of its frequencies.

Decides that layout; the readers are in `engine.index`. Must never know what is asked. Rows count within the shard.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from mmap import mmap
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from engine.snapshot.columns import texts_found
from engine.snapshot.database import asking
from engine.snapshot.format import POSITIONS, POSTINGS, TERMS, FileEntry, LexiconEntry, Shard, file_sha256
from engine.snapshot.interned import Interned
from engine.snapshot.letters import Bytes, Letters
from engine.snapshot.planes import BLOCK, PACKED, count_height, count_planes, height, planes_of, row_planes
from engine.snapshot.tokens import Tokens, tokens_of

__all__ = ["write_lexicon"]

_SLICE_ROWS = 8_192
_SLICE_BYTES = 2_000_000
"""Split into words at a time, whichever is less: a quarter of a million words, whose arrays fit a processor's cache."""

_REGIONS = 4
_FIELDS = ("body", "topic")

_KEY_BITS = 64
"""Term, row and position of an occurrence are sorted as one integer where they fit."""

_ROW_BITS = 32
_LAST = (1 << 32) - 1

_PART = 1 << 20
"""Sorted occurrences made into postings at a time."""

Ints = NDArray[np.uint32]
Keys = NDArray[np.uint64]
Planes = NDArray[np.uint64]
Longs = NDArray[np.int64]
Regions = list[list[Tokens]]
"""For each region its tokens, slice by slice in order of row."""


@dataclass(frozen=True, slots=True)
class _Postings:
    """Postings in order of term and row: their rows and frequencies; how many each term has; steps of all positions."""

    rows: Ints
    frequencies: Ints
    df: Longs
    steps: Ints


def write_lexicon(
    connection: duckdb.DuckDBPyConnection, folder: Path, shard: Shard, indexed: Callable[[int], None]
) -> tuple[list[FileEntry], LexiconEntry]:
    """Write the index of one shard, whose rows are the table `shard`; its entries for the manifest.

    `indexed` is told now and then how many rows have been.
    """
    interned = Interned()
    regions = _tokens(connection, shard, interned, indexed)
    indexed(shard.rows)
    places, terms = _ordered(connection, regions, interned)
    postings = _postings(regions, places, terms)
    rows, tf, steps = postings.rows, postings.frequencies, postings.steps
    heights = (
        height(shard.rows),
        count_height(int(tf.max(initial=1))),
        height(int(steps.max(initial=0))),
    )

    def planes_of_postings(part: slice) -> Planes:
        return np.concatenate((row_planes(rows[part], heights[0]), count_planes(tf[part], heights[1])))

    def planes_of_positions(part: slice) -> Planes:
        return planes_of(steps[part], heights[2])

    cursors = (connection.cursor(), connection.cursor())
    parts = (
        partial(_write_terms, connection, folder, shard, postings.df),
        partial(
            _write_blocks, cursors[0], folder, shard, POSTINGS, planes_of_postings, heights[0] + heights[1], len(rows)
        ),
        partial(_write_blocks, cursors[1], folder, shard, POSITIONS, planes_of_positions, heights[2], len(steps)),
    )
    with ThreadPoolExecutor(len(parts)) as pool:
        entries = [each.result() for each in [pool.submit(part) for part in parts]]
    return entries, LexiconEntry(BLOCK, _before_each_block(tf), heights)


def _tokens(
    connection: duckdb.DuckDBPyConnection, shard: Shard, interned: Interned, indexed: Callable[[int], None]
) -> Regions:
    """Every token of a shard: texts are fetched here, and split on one thread for each processor."""
    letters = Letters(asking(connection))
    (threads,) = connection.execute("SELECT current_setting('threads')::INTEGER").fetchall()[0]
    regions: Regions = [[] for _ in range(_REGIONS)]
    waiting: deque[tuple[int, Future[tuple[Tokens, Tokens]]]] = deque()

    def take() -> None:
        topic, future = waiting.popleft()
        for region, tokens in zip((topic, 2 + topic), future.result(), strict=True):
            regions[region].append(tokens)

    with ThreadPoolExecutor(threads) as pool:
        for topic, first, size, raw in _slices(connection, shard):
            waiting.append((topic, pool.submit(tokens_of, raw, size, first, letters, interned)))
            if len(waiting) > threads:
                take()
                indexed(first)
        while waiting:
            take()
    return regions


def _slices(connection: duckdb.DuckDBPyConnection, shard: Shard) -> Iterator[tuple[int, int, int, Bytes]]:
    """Field, first row, number of rows and texts of some neighbouring rows, until all have been had."""
    for topic, field in enumerate(_FIELDS):
        found = connection.execute(f"SELECT strlen({field})::BIGINT AS size FROM shard ORDER BY row").fetchnumpy()
        ends = np.cumsum(np.ma.getdata(found["size"]))
        if not len(ends) or not ends[-1]:
            continue
        first = 0
        while first < shard.rows:
            before = ends[first - 1] if first else 0
            # A longer text is a slice of its own.
            last = max(first + 1, int(np.searchsorted(ends, before + _SLICE_BYTES, side="right")))
            last = min(last, first + _SLICE_ROWS)
            texts = f"""
                SELECT coalesce(folded_{field}, lower({field})) || chr(0) AS text FROM shard
                WHERE row >= ? AND row < ? ORDER BY row
            """
            yield topic, first, last - first, texts_found(connection.sql(texts, params=[first, last]))
            first = last


def _ordered(connection: duckdb.DuckDBPyConnection, regions: Regions, interned: Interned) -> tuple[list[Longs], int]:
    """Make the table `ordered` of all terms in the order of the files.

    Returns for each region the place of each number, and how many terms there are.
    """
    totals = [np.zeros(len(interned), dtype=np.int64) for _ in regions]
    for total, tokens in zip(totals, regions, strict=True):
        for part in tokens:
            counts = np.bincount(part.number)
            total[: len(counts)] += counts
    used = [np.flatnonzero(total) for total in totals]
    numbers = np.concatenate(used)
    connection.register(
        "terms",
        {
            "region": np.repeat(np.arange(_REGIONS, dtype=np.uint8), [len(each) for each in used]),
            "term": np.array(interned.spelt(numbers), dtype=np.object_),
            "total": np.concatenate([total[each] for total, each in zip(totals, used, strict=True)]).astype(np.uint32),
            "number": np.arange(len(numbers), dtype=np.uint32),
        },
    )
    # A table is read in the order it was made in; numbering it by a window costs three times the sort.
    found = connection.execute("""
        CREATE OR REPLACE TEMP TABLE ordered AS
        SELECT region, term::VARCHAR AS term, total, number FROM terms ORDER BY region, floor(log2(total)) DESC, term;
        SELECT number FROM ordered
    """).fetchnumpy()
    connection.unregister("terms")
    place = np.empty(len(numbers), dtype=np.int64)
    place[np.ma.getdata(found["number"])] = np.arange(len(numbers))
    places = totals
    for at, region in enumerate(np.split(place, np.cumsum([len(each) for each in used])[:-1])):
        places[at][used[at]] = region
    return places, len(numbers)


def _postings(regions: Regions, places: list[Longs], terms: int) -> _Postings:
    """All tokens sorted; `regions` are emptied on the way, for there is much of both."""
    slices = [each for tokens in regions for each in tokens if len(each.number)]
    row_bits = max((each.first_row + int(each.text[-1]) for each in slices), default=0).bit_length()
    position_bits = max((int(each.position.max()) for each in slices), default=0).bit_length()
    del slices
    if terms.bit_length() + row_bits + position_bits <= _KEY_BITS:
        keys = _sorted_as_one(regions, places, row_bits, position_bits)
        # What has been read of them is written over: the steps are half as wide.
        steps = keys.view(np.uint32)[: len(keys)]
        shift, mask = np.uint64(position_bits), np.uint64((1 << position_bits) - 1)
        return _listed(steps, terms, row_bits, lambda at: (keys[at] >> shift, (keys[at] & mask).astype(np.uint32)))
    pairs, positions = _sorted_by_three(regions, places)
    return _listed(np.empty_like(positions), terms, _ROW_BITS, lambda at: (pairs[at], positions[at]))


def _sorted_by_three(regions: Regions, places: list[Longs]) -> tuple[Keys, Ints]:
    """Term and row of each occurrence as one integer, and its position."""
    found = [(each, place) for tokens, place in zip(regions, places, strict=True) for each in tokens]
    term = np.concatenate([place[each.number] for each, place in found]).astype(np.uint64)
    row = np.concatenate([each.text.astype(np.uint64) + np.uint64(each.first_row) for each, _ in found])
    pair = term << np.uint64(_ROW_BITS) | row
    position = np.concatenate([each.position for each, _ in found]).astype(np.uint32)
    order = np.lexsort((position, pair))
    return pair[order], position[order]


def _sorted_as_one(regions: Regions, places: list[Longs], row_bits: int, position_bits: int) -> Keys:
    """Term, row and position of each occurrence as one integer: sorted several times faster than three columns."""
    keys: Keys = _room(sum(len(each.number) for tokens in regions for each in tokens), np.uint64)
    done = 0
    for tokens, place in zip(regions, places, strict=True):
        shifted = place.astype(np.uint64) << np.uint64(row_bits + position_bits)
        for each in tokens:
            part = keys[done : done + len(each.number)]
            np.take(shifted, each.number, out=part, mode="clip")
            part += np.uint64(each.first_row << position_bits)
            part += each.text.astype(np.uint64) << np.uint64(position_bits)
            part |= each.position
            done += len(part)
        tokens.clear()
    keys.sort()
    return keys


def _listed(steps: Ints, terms: int, row_bits: int, parts: Callable[[slice], tuple[Keys, Ints]]) -> _Postings:
    """The postings of sorted occurrences, of which `parts` tells some: term and row as one, and positions.

    `steps` is room for those of all. A part at a time: of all at once each step between takes hundreds of megabytes,
    which cost more than the step.
    """
    size = len(steps)
    # No more of them is used, and so takes memory, than there are postings.
    rows: Ints = _room(size, np.uint32)
    frequencies: Ints = _room(size, np.uint32)
    df = np.zeros(terms, dtype=np.int64)
    done = 0
    last_pair, last_position = None, 0
    for first in range(0, size, _PART):
        part = slice(first, first + _PART)
        pairs, positions = parts(part)
        new = np.empty(len(pairs), dtype=bool)
        new[0] = pairs[0] != last_pair
        np.not_equal(pairs[1:], pairs[:-1], out=new[1:])
        heads = np.flatnonzero(new)
        step = steps[part]
        np.subtract(positions[1:], positions[:-1], out=step[1:])
        step[0] = int(positions[0]) - last_position & _LAST
        step[heads] = positions[heads]
        # What comes before the first head belongs to the last posting of the part before.
        if done:
            frequencies[done - 1] += heads[0] if len(heads) else len(pairs)
        found = slice(done, done + len(heads))
        frequencies[found] = np.diff(heads, append=len(pairs))
        begun = pairs[heads]
        rows[found] = begun & np.uint64((1 << row_bits) - 1)
        of = (begun >> np.uint64(row_bits)).astype(np.int64)
        if len(of):
            counts = np.bincount(of - of[0])
            df[of[0] : of[0] + len(counts)] += counts
        done += len(heads)
        last_pair, last_position = pairs[-1], int(positions[-1])
    return _Postings(rows[:done], frequencies[:done], df, steps)


def _room(size: int, kind: type[np.generic]) -> NDArray[Any]:
    """An array to be filled from its start.

    NumPy would ask for huge pages, and the system gather them while the array is filled: half of what filling it takes
    where memory has been in use for long.
    """
    width = np.dtype(kind).itemsize
    return np.frombuffer(mmap(-1, max(1, size * width)), dtype=kind, count=size)


def _before_each_block(frequencies: Ints) -> tuple[int, ...]:
    """How many occurrences lie before each block of postings."""
    if not len(frequencies):
        return ()
    sums = np.cumsum(np.add.reduceat(frequencies, np.arange(0, len(frequencies), BLOCK), dtype=np.int64))
    return (0, *sums[:-1].tolist())


def _write_terms(connection: duckdb.DuckDBPyConnection, folder: Path, shard: Shard, df: Longs) -> FileEntry:
    connection.register("counts", {"df": df.astype(np.uint32)})
    select = "SELECT region, term, df, total FROM ordered POSITIONAL JOIN counts"
    entry = _write(connection, folder, shard, TERMS, select, len(df), max(2_048, len(df) + 1))
    connection.unregister("counts")
    connection.execute("DROP TABLE ordered")
    return entry


def _write_blocks(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    shard: Shard,
    name: str,
    planes: Callable[[slice], Planes],
    height: int,
    integers: int,
) -> FileEntry:
    """Write the planes of so many integers, block by block, `height` planes of each."""
    firsts = range(0, integers, BLOCK)
    written: Planes = _room(sum(height * -(-min(BLOCK, integers - first) // PACKED) for first in firsts), np.uint64)
    group = height * BLOCK // PACKED
    for block, first in enumerate(firsts):
        written[block * group : (block + 1) * group] = planes(slice(first, first + BLOCK)).reshape(-1)
    connection.register("written", {"planes": written})
    # Only plain encoding keeps the bytes of a plane together. There is nothing to find but how often a byte occurs:
    # zstd's first level looks for no more, and takes less room than the next eight.
    encoding = ", DICTIONARY_SIZE_LIMIT 1, COMPRESSION_LEVEL 1"
    entry = _write(connection, folder, shard, name, "SELECT planes FROM written", len(written), group, encoding)
    connection.unregister("written")
    return entry


def _write(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    shard: Shard,
    name: str,
    select: str,
    rows: int,
    group: int,
    encoding: str = ", PARQUET_VERSION v2",
) -> FileEntry:
    path = folder / shard.folder / name
    quoted = str(path).replace("'", "''")
    connection.execute(
        f"COPY ({select}) TO '{quoted}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group}{encoding})"
    )
    return FileEntry(f"{shard.folder}/{name}", path.stat().st_size, rows, file_sha256(path))
