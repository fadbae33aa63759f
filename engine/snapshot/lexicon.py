"""Writes the index of a shard: every distinct word with the rows and places it occurs at, in three Parquet files.

    terms       region, term, df, total     one group; by region, floor(log2(total)) falling, then term
    postings    row_0.., tf_0..             for each term its rows in order; a term's range follows from the dfs
    positions   position_0..                for each posting its places in order, each less the one before it

Regions are `WORDS` and `GRAMS`, each of the body and of the topic. A word goes to WORDS, unless it holds a letter
of a script that sets no spaces: such a run goes to GRAMS as its bigrams, with a blank before the first and after
the last character (`容器` is ` 容`, `容器`, `器 `). A word takes one position, a run of GRAMS one for each character
and one for its end; the next one follows at once after a single space, and 1 further on after anything else. So a
phrase is a chain of neighbours, and a term inside a run a chain of bigrams that never leaves the run.

Columns `row_0` and on are planes of bytes: `engine.snapshot.planes`.

Decides that layout; the readers are in `engine.index`. Must never know what is asked. Rows count within the shard.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from engine.snapshot.format import POSITIONS, POSTINGS, TERMS, FileEntry, LexiconEntry, Shard, file_sha256
from engine.snapshot.planes import BLOCK, PACKED, packed, packed_counts, packed_rows
from engine.text import UNSPACED

__all__ = ["write_lexicon"]

_SLICE_ROWS = 131_072
_SLICE_BYTES = 48_000_000
"""Tokenised at a time, whichever is less: about 10 million words in memory."""

_WORD_CHAR = r"\p{L}\p{M}\p{N}_"
_SEPARATORS = rf"[^{_WORD_CHAR}]*[^{_WORD_CHAR} ][^{_WORD_CHAR}]*| {{2,}}"
"""A maximal run between words, unless it is a single space: made two spaces, it takes one position more."""

Ints = NDArray[np.uint32]
Longs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Every token of a shard, unordered: number of its term, row, position."""

    term: Ints
    row: Ints
    position: Ints


@dataclass(frozen=True, slots=True)
class _Postings:
    """Tokens in order of term, row, position; `starts` are the places where a new (term, row) begins."""

    term: Ints
    row: Ints
    position: Ints
    starts: Longs


def write_lexicon(
    connection: duckdb.DuckDBPyConnection, folder: Path, shard: Shard
) -> tuple[list[FileEntry], LexiconEntry]:
    """Write the index of one shard of the table `numbered`; its entries for the manifest."""
    connection.execute("CREATE TEMP TABLE lexicon (region UTINYINT, term VARCHAR, number UINTEGER)")
    tokens = _tokens(connection, shard)
    terms = _number(connection, tokens)
    postings = _postings(tokens)
    del tokens
    heads, position = postings.starts, postings.position
    tf = np.diff(heads, append=len(position))
    df = np.bincount(postings.term[heads], minlength=terms)
    total = np.bincount(postings.term, minlength=terms)
    steps = position.copy()
    steps[1:] -= position[:-1]
    steps[heads] = position[heads]
    columns = {"row": packed_rows(postings.row[heads]), "tf": packed_counts(tf.astype(np.uint32))}
    entries = [
        _write_terms(connection, folder, shard, df, total),
        _copy(connection, folder, shard, POSTINGS, columns),
        _copy(connection, folder, shard, POSITIONS, {"position": packed(steps)}),
    ]
    connection.execute("DROP TABLE lexicon")
    return entries, LexiconEntry(BLOCK, tuple(heads[::BLOCK].tolist()))


def _tokens(connection: duckdb.DuckDBPyConnection, shard: Shard) -> _Tokens:
    parts = [_tokens_of(connection, first, end, shard.first_row) for first, end in _slices(connection, shard)]
    return _Tokens(*(np.concatenate([part[i] for part in parts] or [np.zeros(0, np.uint32)]) for i in range(3)))


def _slices(connection: duckdb.DuckDBPyConnection, shard: Shard) -> Iterator[tuple[int, int]]:
    end = shard.first_row + shard.rows
    (text_bytes,) = connection.execute(
        "SELECT coalesce(sum(strlen(folded_topic) + strlen(folded_body)), 0)::BIGINT FROM numbered"
        " WHERE row >= ? AND row < ?",
        [shard.first_row, end],
    ).fetchall()[0]
    average = max(1, text_bytes // max(1, shard.rows))
    rows = max(1, min(_SLICE_ROWS, _SLICE_BYTES // average))
    for first in range(shard.first_row, end, rows):
        yield first, min(first + rows, end)


def _parts(text: str, where: str) -> str:
    """Row and list of its words, split at single blanks; an empty part stands for any other separator."""
    return (
        f"SELECT row, string_split(regexp_replace({text}, '{_SEPARATORS}', '  ', 'g'), ' ') AS parts"
        f" FROM slice WHERE {text} <> '' AND {where}"
    )


def _words(region: int, text: str, unspaced: str) -> str:
    return f"""
        SELECT {region}, row, term, position FROM (
            SELECT row, unnest(parts) AS term, generate_subscripts(parts, 1) - 1 AS position
            FROM ({_parts(text, f"NOT {unspaced}")}))
        WHERE term <> ''
    """


def _runs(text: str, unspaced: str) -> str:
    """Words and runs of the texts that hold unspaced letters, each with its first position."""
    return f"""
        SELECT row, part, unspaced, (sum(width) OVER (
            PARTITION BY row ORDER BY place ROWS UNBOUNDED PRECEDING) - width)::BIGINT AS position
        FROM (SELECT *, CASE WHEN unspaced THEN length(part) + 1 ELSE 1 END AS width
              FROM (SELECT row, part, place, regexp_matches(part, '[{UNSPACED}]') AS unspaced
                    FROM (SELECT row, unnest(parts) AS part, generate_subscripts(parts, 1) AS place
                          FROM ({_parts(text, unspaced)}))))
    """


def _grams(region: int) -> str:
    return f"""
        SELECT {region}, row, chars[place + 1] || chars[place + 2], position + greatest(place - 1, 0)
        FROM (SELECT row, position, chars, unnest(range(len(chars) - 1)) AS place
              FROM (SELECT row, position, regexp_extract_all(' ' || part || ' ', '.') AS chars
                    FROM runs WHERE unspaced))
    """


def _tokens_of(connection: duckdb.DuckDBPyConnection, first: int, end: int, first_row: int) -> tuple[Ints, Ints, Ints]:
    """Term number, row and position of every token of some rows; terms not met before get the next numbers."""
    run = connection.execute
    run(
        "CREATE OR REPLACE TEMP TABLE slice AS SELECT (row - ?)::UINTEGER AS row, folded_body, folded_topic,"
        f" {_holds_unspaced('folded_body')} AS unspaced_body, {_holds_unspaced('folded_topic')} AS unspaced_topic"
        " FROM numbered WHERE row >= ? AND row < ?",
        [first_row, first, end],
    )
    run("CREATE OR REPLACE TEMP TABLE token (region UTINYINT, row UINTEGER, term VARCHAR, position UINTEGER)")
    for topic, part in enumerate(("body", "topic")):
        text, unspaced = f"folded_{part}", f"unspaced_{part}"
        run(f"INSERT INTO token {_words(topic, text, unspaced)}")
        run(f"CREATE OR REPLACE TEMP TABLE runs AS {_runs(text, unspaced)}")
        run(f"INSERT INTO token SELECT {topic}, row, part, position FROM runs WHERE part <> '' AND NOT unspaced")
        run(f"INSERT INTO token {_grams(2 + topic)}")
    run("""
        INSERT INTO lexicon
        SELECT region, term, (SELECT count(*) FROM lexicon) + row_number() OVER () - 1
        FROM (SELECT DISTINCT region, term FROM token) ANTI JOIN lexicon USING (region, term)
    """)
    found = run("SELECT number, row, position FROM token JOIN lexicon USING (region, term)").fetchnumpy()
    number, row, position = (np.ma.getdata(found[name]) for name in ("number", "row", "position"))
    return number, row, position


def _holds_unspaced(column: str) -> str:
    return f"strlen({column}) > length({column}) AND regexp_matches({column}, '[{UNSPACED}]')"


def _number(connection: duckdb.DuckDBPyConnection, tokens: _Tokens) -> int:
    """Replace the terms' numbers by their places in the order of the files; returns how many there are."""
    total = np.bincount(tokens.term)
    connection.register("weights", {"number": np.arange(len(total), dtype=np.uint32), "total": total})
    places = connection.execute("""
        CREATE OR REPLACE TEMP TABLE ordered AS
        SELECT region, term, number,
               row_number() OVER (ORDER BY region, floor(log2(total)) DESC, term) - 1 AS place
        FROM lexicon JOIN weights USING (number);
        SELECT place::UINTEGER AS place FROM ordered ORDER BY number
    """).fetchnumpy()["place"]
    connection.unregister("weights")
    if len(total):
        np.take(np.ma.getdata(places), tokens.term, out=tokens.term)
    return len(total)


def _postings(tokens: _Tokens) -> _Postings:
    row_bits = int(tokens.row.max(initial=0)).bit_length()
    position_bits = int(tokens.position.max(initial=0)).bit_length()
    if int(tokens.term.max(initial=0)).bit_length() + row_bits + position_bits <= 64:
        # One array of integers sorts several times faster than three columns.
        keys = tokens.term.astype(np.uint64) << np.uint64(row_bits + position_bits)
        keys |= tokens.row.astype(np.uint64) << np.uint64(position_bits)
        keys |= tokens.position
        keys.sort()
        position = (keys & np.uint64((1 << position_bits) - 1)).astype(np.uint32)
        keys >>= np.uint64(position_bits)
        row = (keys & np.uint64((1 << row_bits) - 1)).astype(np.uint32)
        keys >>= np.uint64(row_bits)
        term = keys.astype(np.uint32)
    else:
        order = np.lexsort((tokens.position, tokens.row, tokens.term))
        term, row, position = tokens.term[order], tokens.row[order], tokens.position[order]
    new = np.ones(len(term), dtype=bool)
    np.logical_or(term[1:] != term[:-1], row[1:] != row[:-1], out=new[1:])
    return _Postings(term, row, position, np.flatnonzero(new))


def _write_terms(
    connection: duckdb.DuckDBPyConnection, folder: Path, shard: Shard, df: Longs, total: Longs
) -> FileEntry:
    places = np.arange(len(df), dtype=np.uint32)
    connection.register("counts", {"place": places, "df": df.astype(np.uint32), "total": total.astype(np.uint32)})
    entry = _write(
        connection,
        folder,
        shard,
        TERMS,
        "SELECT region, term, df, total FROM ordered JOIN counts USING (place) ORDER BY place",
        len(df),
        max(2_048, len(df) + 1),
    )
    connection.unregister("counts")
    connection.execute("DROP TABLE ordered")
    return entry


def _copy(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    shard: Shard,
    name: str,
    columns: dict[str, list[NDArray[np.uint64]]],
) -> FileEntry:
    planes = {f"{column}_{place}": plane for column, found in columns.items() for place, plane in enumerate(found)}
    connection.register("planes", planes)
    rows = len(next(iter(planes.values())))
    # Only plain encoding keeps the bytes of a plane together.
    entry = _write(
        connection, folder, shard, name, "SELECT * FROM planes", rows, BLOCK // PACKED, ", DICTIONARY_SIZE_LIMIT 1"
    )
    connection.unregister("planes")
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
