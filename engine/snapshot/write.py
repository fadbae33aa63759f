"""The second half of a build: the staged table sorted, numbered, cut into shards, written, and described.

Decides order, ordinals and row groups (DESIGN 4). Must never know where a snapshot is published.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from engine.errors import BrokenSnapshot
from engine.ports import Progress
from engine.snapshot.format import (
    FOLDED,
    MANIFEST,
    NARROW,
    SCRIPTS,
    TEXT,
    FileEntry,
    LexiconEntry,
    Manifest,
    Shard,
    file_sha256,
)
from engine.snapshot.lexicon import write_lexicon
from engine.snapshot.stage import STAGED

__all__ = ["WORD", "Stamp", "write"]

WORD = r"[\p{L}\p{M}\p{N}_]+"
"""A word: a maximal run of letters, marks, digits and `_`. RE2's own `\\w` is ASCII only."""

_TEXT_GROUP = 2_048
"""Rows per row group of `text`: a hit costs one group, so groups are small (DuckDB's smallest)."""

_FOLDED_GROUP = 8_192
"""Rows per row group of `folded`, which is read whole by a scan and in few places by verification."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a manifest says of the build itself. Times in microseconds since 1970, UTC.

    Without `index` every search of the snapshot is a scan.
    """

    snapshot_id: str
    created_at: int
    hayfork: str
    sources: tuple[dict[str, Any], ...] = ()
    shard_rows: int = 1_000_000
    index: bool = True


def write(
    connection: duckdb.DuckDBPyConnection, folder: Path, stamp: Stamp, progress: Progress
) -> tuple[Manifest, int]:
    """Write all files of a snapshot below `folder`, the manifest last.

    Returns the manifest, and how many rows were left out as duplicates of one id.

    Raises:
        BrokenSnapshot: `key_collision` when two ids share a key (never seen; would make a seen-set lie).
    """
    duplicates = _number(connection, progress)
    shards = _shards(connection, stamp.shard_rows)
    files: list[FileEntry] = []
    lexicons: list[LexiconEntry] = []
    for index, shard in enumerate(shards):
        progress("writing shards", index, len(shards))
        files += _write_shard(connection, folder, shard)
        if stamp.index:
            progress("indexing shards", index, len(shards))
            entries, lexicon = write_lexicon(connection, folder, shard)
            files += entries
            lexicons.append(lexicon)
    progress("writing shards", len(shards), len(shards))
    manifest = _manifest(connection, stamp, shards, files, lexicons)
    (folder / MANIFEST).write_bytes(manifest.to_bytes())
    return manifest, duplicates


def _number(connection: duckdb.DuckDBPyConnection, progress: Progress) -> int:
    """Make the table `numbered`: one row per message in order, with its ordinals."""
    run = connection.execute
    progress("sorting", 0, None)
    staged = _one(connection, f"SELECT count(*) FROM {STAGED}")
    run(f"""
        CREATE TABLE kept AS SELECT * FROM {STAGED}
        QUALIFY row_number() OVER (
            PARTITION BY message_id ORDER BY edited_at DESC NULLS LAST, sequence DESC) = 1
    """)
    run(f"DROP TABLE {STAGED}")
    kept = _one(connection, "SELECT count(*) FROM kept")
    if kept != _one(connection, "SELECT count(DISTINCT message_key) FROM kept"):
        raise BrokenSnapshot("key_collision", "two message ids share one key")
    run("""
        CREATE TABLE conversation_names AS
        SELECT row_number() OVER (ORDER BY conversation_id) - 1 AS ordinal, conversation_id,
               arg_max(conversation, (sent_at, sequence)) AS name, count(*) AS messages
        FROM kept GROUP BY conversation_id
    """)
    run("""
        CREATE TABLE author_names AS
        SELECT row_number() OVER (ORDER BY author_id, author) - 1 AS ordinal, author_id, author, count(*) AS messages
        FROM kept GROUP BY author_id, author
    """)
    for column in ("from_role", "to_role", "kind", "status"):
        # Never by how many there are: where two counts are equal the order would tell of messages out of sight.
        run(f"""
            CREATE TABLE {column}_values AS
            SELECT row_number() OVER (ORDER BY {column}) - 1 AS ordinal, {column} AS value,
                   count(*) AS messages
            FROM kept WHERE {column} IS NOT NULL GROUP BY {column}
        """)
    scripts = " + ".join(
        f"CASE WHEN regexp_matches(text, '{pattern}') THEN {1 << bit} ELSE 0 END"
        for bit, (_, pattern) in enumerate(SCRIPTS)
    )
    run(f"""
        CREATE TABLE worded AS
        SELECT * EXCLUDE (text), CASE WHEN strlen(text) = length(text) THEN 0 ELSE {scripts} END AS scripts,
               CASE WHEN words >= 5 THEN text_key ELSE author_text_key END AS copy_key
        FROM (SELECT *, (len(regexp_extract_all(folded_topic, '{WORD}'))
                       + len(regexp_extract_all(folded_body, '{WORD}')))::UINTEGER AS words,
                    topic || body AS text FROM kept)
    """)
    run("DROP TABLE kept")
    run("""
        CREATE TABLE copies AS
        SELECT copy_key, row_number() OVER (ORDER BY copy_key) - 1 AS ordinal FROM worded GROUP BY copy_key
    """)
    run("""
        CREATE TABLE threads AS
        SELECT conversation_id, thread_id, min(sent_at) AS thread_start FROM worded GROUP BY conversation_id, thread_id
    """)
    run("""
        CREATE TABLE thread_ordinals AS
        SELECT conversation_id, thread_id, thread_start,
               row_number() OVER (ORDER BY conversation_id, thread_start, thread_id) - 1 AS ordinal
        FROM threads
    """)
    progress("sorting", 1, None)
    run("""
        CREATE TABLE numbered AS
        SELECT row_number() OVER (ORDER BY t.ordinal, w.sent_at, w.message_id) - 1 AS row,
               c.ordinal AS conversation_ordinal, t.ordinal AS thread_ordinal, a.ordinal AS author_ordinal,
               k.ordinal AS copy_ordinal, f.ordinal AS from_role_ordinal, coalesce(r.ordinal, -1) AS to_role_ordinal,
               d.ordinal AS kind_ordinal, coalesce(s.ordinal, -1) AS status_ordinal,
               w.* EXCLUDE (conversation, text_key, author_text_key, sequence)
        FROM worded w
        JOIN conversation_names c USING (conversation_id)
        JOIN thread_ordinals t ON t.conversation_id = w.conversation_id AND t.thread_id = w.thread_id
        JOIN author_names a ON a.author_id = w.author_id AND a.author = w.author
        JOIN copies k ON k.copy_key = w.copy_key
        JOIN from_role_values f ON f.value = w.from_role
        JOIN kind_values d ON d.value = w.kind
        LEFT JOIN to_role_values r ON r.value = w.to_role
        LEFT JOIN status_values s ON s.value = w.status
        ORDER BY row
    """)
    run("DROP TABLE worded")
    return staged - kept


def _shards(connection: duckdb.DuckDBPyConnection, shard_rows: int) -> list[Shard]:
    """Shards of at most `shard_rows` rows that end where a thread does; a longer thread has one of its own."""
    total = _one(connection, "SELECT count(*) FROM numbered")
    shards: list[Shard] = []
    first = 0
    while first < total or not shards:
        end = min(first + shard_rows, total)
        if end < total:
            thread = "(SELECT thread_ordinal FROM numbered WHERE row = ?)"
            start = _one(connection, f"SELECT min(row) FROM numbered WHERE thread_ordinal = {thread}", [end])
            if start > first:
                end = start
            else:
                end = 1 + _one(connection, f"SELECT max(row) FROM numbered WHERE thread_ordinal = {thread}", [end])
        shards.append(Shard(f"{len(shards):04d}", first, end - first))
        first = end
    return shards


_NARROW_SQL = """
    SELECT message_key, copy_key, conversation_ordinal::UINTEGER AS conversation, thread_ordinal::UINTEGER AS thread,
           author_ordinal::UINTEGER AS author, copy_ordinal::UINTEGER AS copy, from_role_ordinal::SMALLINT AS from_role,
           to_role_ordinal::SMALLINT AS to_role, kind_ordinal::SMALLINT AS kind, status_ordinal::SMALLINT AS status,
           sent_at, words, scripts::USMALLINT AS scripts
    FROM numbered WHERE row >= {first} AND row < {end} ORDER BY row
"""
_TEXT_SQL = """
    SELECT message_id, thread_id, topic, body, link, edited_at, attributes
    FROM numbered WHERE row >= {first} AND row < {end} ORDER BY row
"""
_FOLDED_SQL = """
    SELECT folded_topic, folded_body FROM numbered WHERE row >= {first} AND row < {end} ORDER BY row
"""


def _write_shard(connection: duckdb.DuckDBPyConnection, folder: Path, shard: Shard) -> list[FileEntry]:
    (folder / shard.folder).mkdir(parents=True)
    one_group = max(2_048, shard.rows + 1)
    entries = []
    for name, sql, group in (
        (NARROW, _NARROW_SQL, one_group),
        (TEXT, _TEXT_SQL, _TEXT_GROUP),
        (FOLDED, _FOLDED_SQL, _FOLDED_GROUP),
    ):
        path = folder / shard.folder / name
        select = sql.format(first=shard.first_row, end=shard.first_row + shard.rows)
        quoted = str(path).replace("'", "''")
        connection.execute(f"COPY ({select}) TO '{quoted}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group})")
        entries.append(FileEntry(f"{shard.folder}/{name}", path.stat().st_size, shard.rows, file_sha256(path)))
    return entries


def _manifest(
    connection: duckdb.DuckDBPyConnection,
    stamp: Stamp,
    shards: Sequence[Shard],
    files: Sequence[FileEntry],
    lexicons: Sequence[LexiconEntry],
) -> Manifest:
    rows, threads, groups, text_bytes, first, last = connection.execute("""
        SELECT count(*), count(DISTINCT thread_ordinal), count(DISTINCT copy_ordinal),
               coalesce(sum(strlen(topic) + strlen(body)), 0)::BIGINT, min(sent_at), max(sent_at)
        FROM numbered
    """).fetchall()[0]

    def values(table: str, columns: str) -> tuple[Any, ...]:
        return tuple(connection.execute(f"SELECT {columns} FROM {table} ORDER BY ordinal").fetchall())

    return Manifest(
        snapshot_id=stamp.snapshot_id,
        created_at=stamp.created_at,
        hayfork=stamp.hayfork,
        rows=rows,
        threads=threads,
        copy_groups=groups,
        text_bytes=text_bytes,
        first=first,
        last=last,
        shards=tuple(shards),
        files=tuple(files),
        conversations=values("conversation_names", "conversation_id, name, messages"),
        authors=values("author_names", "author_id, author, messages"),
        roles=values("from_role_values", "value, messages"),
        to_roles=values("to_role_values", "value, messages"),
        kinds=values("kind_values", "value, messages"),
        statuses=values("status_values", "value, messages"),
        sources=stamp.sources,
        lexicons=tuple(lexicons),
    )


def _one(connection: duckdb.DuckDBPyConnection, sql: str, params: Sequence[object] = ()) -> int:
    (value,) = connection.execute(sql, params).fetchall()[0]
    return int(value)
