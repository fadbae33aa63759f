"""The second half of a build: the staged rows, numbered, cut into shards, written, and described.

Decides files and row groups. Wide rows are moved once, shard by shard. Must never know where a snapshot
is published.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import unidata_version

import duckdb

from engine.ports import Progress
from engine.snapshot.format import (
    FOLDED,
    MANIFEST,
    NARROW,
    TEXT,
    FileEntry,
    LexiconEntry,
    Manifest,
    Shard,
    file_sha256,
)
from engine.snapshot.lexicon import write_lexicon
from engine.snapshot.order import NUMBERED, named, number
from engine.snapshot.stage import STAGED, VALUES
from engine.times import SECOND

__all__ = ["Stamp", "write"]

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
    duplicates = number(connection, progress)
    shards = _shards(connection, stamp.shard_rows)
    files: list[FileEntry] = []
    lexicons: list[LexiconEntry] = []
    rows = sum(shard.rows for shard in shards)
    for shard in shards:
        progress("writing shards", shard.first_row, rows)
        files += _write_shard(connection, folder, shard)
        if stamp.index:
            indexed = partial(_indexed, progress, shard.first_row, rows)
            entries, lexicon = write_lexicon(connection, folder, shard, indexed)
            files += entries
            lexicons.append(lexicon)
    progress("writing shards", rows, rows)
    manifest = _manifest(connection, stamp, shards, files, lexicons)
    (folder / MANIFEST).write_bytes(manifest.to_bytes())
    return manifest, duplicates


def _indexed(progress: Progress, before: int, rows: int, done: int) -> None:
    progress("indexing shards", before + done, rows)


def _shards(connection: duckdb.DuckDBPyConnection, shard_rows: int) -> list[Shard]:
    """Shards of at most `shard_rows` rows that end where a thread does; a longer thread has one of its own."""
    total = _one(connection, f"SELECT count(*) FROM {NUMBERED}")
    shards: list[Shard] = []
    first = 0
    while first < total or not shards:
        end = min(first + shard_rows, total)
        if end < total:
            thread = f"(SELECT thread FROM {NUMBERED} WHERE row = ?)"
            start = _one(connection, f"SELECT min(row) FROM {NUMBERED} WHERE thread = {thread}", [end])
            if start > first:
                end = start
            else:
                end = 1 + _one(connection, f"SELECT max(row) FROM {NUMBERED} WHERE thread = {thread}", [end])
        shards.append(Shard(f"{len(shards):04d}", first, end - first))
        first = end
    return shards


_SHARD_SQL = f"""
    CREATE OR REPLACE TEMP TABLE shard AS
    SELECT (n.row - {{first}})::UINTEGER AS row, s.message_id, coalesce(s.thread_id, s.message_id) AS thread_id,
           s.topic, s.body, s.link, s.edited_at, s.attributes, s.folded_topic, s.folded_body
    FROM {STAGED} s JOIN {NUMBERED} n USING (sequence) WHERE n.row >= {{first}} AND n.row < {{end}} ORDER BY n.row
"""
# What every count needs stands together, last, and before it what a ranking adds: each is fetched as one range.
_NARROW_SQL = f"""
    SELECT message_key, copy_key, scripts, copy,
           ((sent_at % {SECOND} + {SECOND}) % {SECOND})::INTEGER AS micro, words,
           conversation, thread, author, from_role, to_role, kind, status, (sent_at - micro) // {SECOND} AS second
    FROM {NUMBERED} JOIN copies USING (copy_key) WHERE row >= {{first}} AND row < {{end}} ORDER BY row
"""
_TEXT_SQL = "SELECT message_id, thread_id, topic, body, link, edited_at, attributes FROM shard"
_FOLDED_SQL = """
    SELECT coalesce(folded_topic, lower(topic)) AS folded_topic, coalesce(folded_body, lower(body)) AS folded_body
    FROM shard
"""


def _write_shard(connection: duckdb.DuckDBPyConnection, folder: Path, shard: Shard) -> list[FileEntry]:
    """Write a shard's rows, and leave them as the table `shard`."""
    (folder / shard.folder).mkdir(parents=True)
    connection.execute(_SHARD_SQL.format(first=shard.first_row, end=shard.first_row + shard.rows))
    one_group = max(2_048, shard.rows + 1)
    entries = []
    for name, sql, group, encoding in (
        # The second version stores what rises, as threads and times mostly do, as steps.
        (NARROW, _NARROW_SQL, one_group, ", PARQUET_VERSION v2"),
        (TEXT, _TEXT_SQL, _TEXT_GROUP, ""),
        (FOLDED, _FOLDED_SQL, _FOLDED_GROUP, ""),
    ):
        path = folder / shard.folder / name
        select = sql.format(first=shard.first_row, end=shard.first_row + shard.rows)
        quoted = str(path).replace("'", "''")
        connection.execute(
            f"COPY ({select}) TO '{quoted}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group}{encoding})"
        )
        entries.append(FileEntry(f"{shard.folder}/{name}", path.stat().st_size, shard.rows, file_sha256(path)))
    return entries


def _manifest(
    connection: duckdb.DuckDBPyConnection,
    stamp: Stamp,
    shards: Sequence[Shard],
    files: Sequence[FileEntry],
    lexicons: Sequence[LexiconEntry],
) -> Manifest:
    rows, threads, first, last = connection.execute(
        f"SELECT count(*), coalesce(max(thread) + 1, 0), min(sent_at), max(sent_at) FROM {NUMBERED}"
    ).fetchall()[0]
    text_bytes = f"SELECT coalesce(sum(strlen(topic) + strlen(body)), 0)::BIGINT FROM {STAGED}"
    roles, to_roles, kinds, statuses = (named(connection, of, "id, messages") for of in VALUES)
    return Manifest(
        snapshot_id=stamp.snapshot_id,
        created_at=stamp.created_at,
        hayfork=stamp.hayfork,
        rows=rows,
        threads=threads,
        copy_groups=_one(connection, "SELECT count(*) FROM copies"),
        text_bytes=_one(connection, text_bytes),
        first=first,
        last=last,
        shards=tuple(shards),
        files=tuple(files),
        conversations=named(connection, "conversation", "id, name, messages"),
        authors=named(connection, "author", "id, name, messages"),
        roles=roles,
        to_roles=to_roles,
        kinds=kinds,
        statuses=statuses,
        sources=stamp.sources,
        lexicons=tuple(lexicons),
        unicode=unidata_version,
    )


def _one(connection: duckdb.DuckDBPyConnection, sql: str, params: Sequence[object] = ()) -> int:
    (value,) = connection.execute(sql, params).fetchall()[0]
    return int(value)
