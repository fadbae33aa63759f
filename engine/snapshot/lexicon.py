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
from pathlib import Path

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

Ints = NDArray[np.uint32]
Planes = NDArray[np.uint64]
Longs = NDArray[np.int64]
Regions = list[list[Tokens]]
"""For each region its tokens, slice by slice in order of row."""


@dataclass(frozen=True, slots=True)
class _Postings:
    """Tokens in order of term, row, position; `starts` are the places where a new (term, row) begins."""

    term: Ints
    row: Ints
    position: Ints
    starts: Longs


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
    df = np.bincount(postings.term[postings.starts], minlength=terms)
    tf, steps = _frequencies(postings), _steps(postings)
    heights = (
        height(shard.rows),
        count_height(int(tf.max(initial=1))),
        height(int(steps.max(initial=0))),
    )
    rows = postings.row[postings.starts]

    def planes_of_postings(part: slice) -> Planes:
        return np.concatenate((row_planes(rows[part], heights[0]), count_planes(tf[part], heights[1])))

    def planes_of_positions(part: slice) -> Planes:
        return planes_of(steps[part], heights[2])

    cursors = (connection.cursor(), connection.cursor())
    parts = (
        partial(_write_terms, connection, folder, shard, df),
        partial(
            _write_blocks, cursors[0], folder, shard, POSTINGS, planes_of_postings, heights[0] + heights[1], len(rows)
        ),
        partial(_write_blocks, cursors[1], folder, shard, POSITIONS, planes_of_positions, heights[2], len(steps)),
    )
    with ThreadPoolExecutor(len(parts)) as pool:
        entries = [each.result() for each in [pool.submit(part) for part in parts]]
    return entries, LexiconEntry(BLOCK, tuple(postings.starts[::BLOCK].tolist()), heights)


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
    row_bits = max((int(each.row[-1]) for each in slices), default=0).bit_length()
    position_bits = max((int(each.position.max()) for each in slices), default=0).bit_length()
    del slices
    if terms.bit_length() + row_bits + position_bits <= _KEY_BITS:
        term, row, position = _sorted_as_one(regions, places, row_bits, position_bits)
    else:
        term, row, position = _sorted_by_three(regions, places)
    new = np.ones(len(term), dtype=bool)
    np.logical_or(term[1:] != term[:-1], row[1:] != row[:-1], out=new[1:])
    return _Postings(term, row, position, np.flatnonzero(new))


def _sorted_by_three(regions: Regions, places: list[Longs]) -> tuple[Ints, Ints, Ints]:
    pairs = [(each, place) for tokens, place in zip(regions, places, strict=True) for each in tokens]
    term = np.concatenate([place[each.number] for each, place in pairs])
    row = np.concatenate([each.row for each, _ in pairs])
    position = np.concatenate([each.position for each, _ in pairs])
    order = np.lexsort((position, row, term))
    return term[order].astype(np.uint32), row[order], position[order]


def _sorted_as_one(regions: Regions, places: list[Longs], row_bits: int, position_bits: int) -> tuple[Ints, Ints, Ints]:
    """One array of integers sorts several times faster than three columns."""
    keys = np.empty(sum(len(each.number) for tokens in regions for each in tokens), dtype=np.uint64)
    done = 0
    for tokens, place in zip(regions, places, strict=True):
        shifted = place.astype(np.uint64) << np.uint64(row_bits + position_bits)
        for each in tokens:
            part = keys[done : done + len(each.number)]
            np.take(shifted, each.number, out=part, mode="clip")
            part |= each.row.astype(np.uint64) << np.uint64(position_bits)
            part |= each.position
            done += len(part)
        tokens.clear()
    keys.sort()
    position = (keys & np.uint64((1 << position_bits) - 1)).astype(np.uint32)
    keys >>= np.uint64(position_bits)
    row = (keys & np.uint64((1 << row_bits) - 1)).astype(np.uint32)
    keys >>= np.uint64(row_bits)
    return keys.astype(np.uint32), row, position


def _write_terms(connection: duckdb.DuckDBPyConnection, folder: Path, shard: Shard, df: Longs) -> FileEntry:
    connection.register("counts", {"df": df.astype(np.uint32)})
    select = "SELECT region, term, df, total FROM ordered POSITIONAL JOIN counts"
    entry = _write(connection, folder, shard, TERMS, select, len(df), max(2_048, len(df) + 1))
    connection.unregister("counts")
    connection.execute("DROP TABLE ordered")
    return entry


def _frequencies(postings: _Postings) -> Ints:
    return np.diff(postings.starts, append=len(postings.position)).astype(np.uint32)


def _steps(postings: _Postings) -> Ints:
    position, starts = postings.position, postings.starts
    steps = position.copy()
    steps[1:] -= position[:-1]
    steps[starts] = position[starts]
    return steps


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
    written = np.empty(sum(height * -(-min(BLOCK, integers - first) // PACKED) for first in firsts), dtype=np.uint64)
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
