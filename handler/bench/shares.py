"""What of an index serves scripts without spaces, whose bigrams no goal of size counts.

Decides how bytes are told apart: by the order of terms, which the writer of the index documents, a row group on the
border by its share. Must never know what is asked.
"""

from pathlib import Path

import duckdb

from engine.index.shard import GRAMS
from engine.snapshot.format import POSITIONS, POSTINGS, TERMS, Manifest
from engine.snapshot.planes import PACKED

__all__ = ["unspaced_bytes"]


def unspaced_bytes(snapshot: Path, manifest: Manifest) -> int:
    """Bytes of the index files that hold bigrams."""
    total = 0.0
    for shard, lexicon in zip(manifest.shards, manifest.lexicons, strict=True):
        rows, frequencies, positions = lexicon.planes
        folder = snapshot / shard.folder
        terms, postings, occurrences = _rows_before_grams(folder / TERMS)
        total += _bytes_behind(folder / TERMS, terms)
        total += _bytes_behind(folder / POSTINGS, postings * (rows + frequencies) / PACKED)
        total += _bytes_behind(folder / POSITIONS, occurrences * positions / PACKED)
    return round(total)


def _rows_before_grams(terms: Path) -> tuple[int, int, int]:
    """Terms, postings and occurrences of words, which all come before those of bigrams."""
    sql = "SELECT count(*), coalesce(sum(df), 0)::BIGINT, coalesce(sum(total), 0)::BIGINT FROM read_parquet(?)"
    with duckdb.connect() as connection:
        (found,) = connection.execute(f"{sql} WHERE region < ?", [str(terms), min(GRAMS)]).fetchall()
    rows, postings, occurrences = found
    return rows, postings, occurrences


def _bytes_behind(file: Path, rows: float) -> float:
    """Compressed bytes of all rows but the first so many."""
    with duckdb.connect() as connection:
        groups = connection.execute(
            "SELECT any_value(row_group_num_rows), sum(total_compressed_size)::BIGINT FROM parquet_metadata(?)"
            " GROUP BY row_group_id ORDER BY row_group_id",
            [str(file)],
        ).fetchall()
    behind = 0.0
    for size, compressed in groups:
        behind += compressed * min(1.0, max(0.0, 1 - rows / size))
        rows -= size
    return behind
