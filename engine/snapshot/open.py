"""A snapshot opened: its narrow columns in memory, its texts on demand.

Decides how a row number becomes a message. Must never know what is asked, nor who asks: `engine.view` joins
the caller's sight to it.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Protocol
from unicodedata import unidata_version

import numpy as np
from numpy.typing import NDArray

from engine.copies import copy_key_of
from engine.errors import BrokenSnapshot
from engine.index.close import CloseWords
from engine.index.search import Index, open_index
from engine.model import Message, message_key_of
from engine.snapshot.format import FOLDED, MANIFEST, NARROW, TEXT, FileEntry, Manifest, check_snapshot_id
from engine.snapshot.narrow import Narrow
from engine.snapshot.statements import Statements
from engine.text import fold

__all__ = ["Corpus", "SnapshotFiles", "open_corpus", "whole_manifest"]


class SnapshotFiles(Protocol):
    """As much of a snapshot store as opening one takes."""

    def read(self, snapshot_id: str, name: str) -> bytes:
        """The whole of one small file."""
        ...

    def prefix(self, snapshot_id: str) -> str:
        """What its files are read under."""
        ...

    def altered(self, snapshot_id: str, files: Sequence[FileEntry]) -> list[str]:
        """Which of these files are missing or not what their entries say."""
        ...


Rows = NDArray[np.int64]

_INLINE_ROWS = 200
"""Up to so many rows are named in the statement, which lets it skip row groups; more are joined."""

_INDEX_BYTES = 160_000_000
"""Decoded index blocks kept: of a million messages three times what many questions use, of ten the last used."""

_KEPT_MESSAGES = 4_096
"""Messages kept once read: a hit is opened, and stands beside the next hit."""
_KEPT_CHARS = 2_000
"""A longer one is read again: so what is kept stays under 20 MB."""

_NAMED_FILES = 5
"""Broken files an error names: which ones is for `verify` to tell whole."""

_TEXT_COLUMNS = "message_id, thread_id, topic, body, link, edited_at, attributes"


class Corpus:
    """One open snapshot. Immutable but for what it has read already; safe to share between threads."""

    def __init__(self, manifest: Manifest, prefix: str, database: Statements) -> None:
        self.manifest = manifest
        self.database = database
        self._prefix = prefix
        self._lock = threading.Lock()
        self._messages: OrderedDict[int, Message] = OrderedDict()
        self.narrow = Narrow([location for _, location in self.shard_files(NARROW)], database)
        if len(self.narrow.second) != manifest.rows:
            raise BrokenSnapshot("snapshot_broken", "the snapshot has not as many rows as its manifest says")
        # Both read on use, and are made here: first calls at once would each keep an index of their own.
        self.index: Index | None = open_index(self, _INDEX_BYTES)
        """`None` where the snapshot has none."""
        self.close_words: CloseWords | None = CloseWords(self, self.index) if self.index is not None else None
        """The close words of terms, `None` where there is no index to look them up in."""

    @property
    def rows(self) -> int:
        """Rows of all shards."""
        return self.manifest.rows

    @property
    def message_keys(self) -> NDArray[np.uint64]:
        """The key of every row; read on first use."""
        return self.narrow.message_key

    @property
    def copy_keys(self) -> NDArray[np.uint64]:
        """The key of every row's copy group; read on first use."""
        return self.narrow.copy_key

    def message_keys_of(self, rows: Sequence[int]) -> list[int]:
        """The keys of a few rows, whose messages a caller is about to be shown: made of what was read for that."""
        if self.narrow.has("message_key"):
            return [int(key) for key in self.narrow.message_key[list(rows)]]
        return [message_key_of(message.message_id) for message in self.messages(rows)]

    def copy_keys_of(self, rows: Sequence[int]) -> list[int]:
        """The keys of their copy groups, likewise; read where another version of Unicode might fold otherwise."""
        if self.narrow.has("copy_key") or self.manifest.unicode != unidata_version:
            return [int(key) for key in self.narrow.copy_key[list(rows)]]
        words = self.narrow.words[list(rows)].tolist()
        return [
            copy_key_of(fold(m.topic), fold(m.body), count, m.message_id, m.author_id)
            for m, count in zip(self.messages(rows), words, strict=True)
        ]

    def row_of(self, message_id: str, among: NDArray[np.bool_] | None = None) -> int | None:
        """The row of a message, `None` when there is none. Costs one row group of text.

        With `among` only these rows are there: for others no statement is run, as for an id that never was.
        """
        same = self.message_keys == np.uint64(message_key_of(message_id))
        found = np.flatnonzero(same if among is None else same & among)
        return next((row for row in found.tolist() if self.messages([row])[0].message_id == message_id), None)

    def thread_of(self, thread_id: str, among: NDArray[np.bool_] | None = None) -> int | None:
        """The ordinal of a thread by the id of its root, also where the root itself is not stored.

        `among` as in `row_of`. Every shard is looked at, found or not: a thread out of sight takes as long as none.
        """
        row = self.row_of(thread_id, among)
        if row is not None and self.messages([row])[0].thread_id == thread_id:
            return int(self.narrow.thread[row])
        ordinal = None
        for shard in self.manifest.shards:
            found = self.database.rows(
                "SELECT min(file_row_number) FROM read_parquet(?, file_row_number = true) WHERE thread_id = ?",
                [self._file(shard.folder, TEXT), thread_id],
            )
            if found[0][0] is not None:
                ordinal = int(self.narrow.thread[shard.first_row + found[0][0]])
        if ordinal is None or among is None or among[self.narrow.thread == ordinal].any():
            return ordinal
        return None

    def messages(self, rows: Sequence[int]) -> list[Message]:
        """The messages of these rows, in this order, with their original texts."""
        wanted = [int(row) for row in rows]
        with self._lock:
            known = {row: self._messages[row] for row in wanted if row in self._messages}
        missing = [row for row in wanted if row not in known]
        if missing:
            known |= {
                int(row): self._message(int(row), values) for row, *values in self._select(TEXT, _TEXT_COLUMNS, missing)
            }
            with self._lock:
                for row in missing:
                    if len(known[row].body) <= _KEPT_CHARS:
                        self._messages[row] = known[row]
                while len(self._messages) > _KEPT_MESSAGES:
                    self._messages.popitem(last=False)
        return [known[row] for row in wanted]

    def stream(self, rows: Rows) -> Iterator[Message]:
        """The messages of these rows, in this order, without holding them all; for as long as it takes."""
        parts: list[str] = []
        params: list[object] = []
        for shard in self.manifest.shards:
            parts.append(
                f"SELECT file_row_number + ? AS row, {_TEXT_COLUMNS} FROM read_parquet(?, file_row_number = true)"
            )
            params += [shard.first_row, self._file(shard.folder, TEXT)]
        sql = f"SELECT t.* FROM ({' UNION ALL '.join(parts)}) t JOIN wanted USING (row) ORDER BY wanted.place"
        wanted = {"row": rows.astype(np.int64), "place": np.arange(len(rows))}
        for chunk in self.database.stream(sql, params, wanted=wanted):
            for row, *values in chunk:
                yield self._message(int(row), values)

    def folded(self, rows: Sequence[int] | Rows) -> list[tuple[str, str]]:
        """(folded topic, folded body) of these rows, in this order."""
        found = {row: (topic, body) for row, topic, body in self._select(FOLDED, "folded_topic, folded_body", rows)}
        return [found[int(row)] for row in rows]

    def shard_files(self, name: str) -> list[tuple[int, str]]:
        """(number of first row, location) of one file of each shard."""
        return [(shard.first_row, self._file(shard.folder, name)) for shard in self.manifest.shards]

    def _file(self, folder: str, name: str) -> str:
        return f"{self._prefix}{folder}/{name}"

    def _select(self, name: str, columns: str, rows: Sequence[int] | Rows) -> list[tuple[Any, ...]]:
        wanted = np.unique(np.asarray(rows, dtype=np.int64))
        out: list[tuple[Any, ...]] = []
        for shard in self.manifest.shards:
            inside = wanted[(wanted >= shard.first_row) & (wanted < shard.first_row + shard.rows)] - shard.first_row
            if not len(inside):
                continue
            select = f"SELECT file_row_number + ? AS row, {columns} FROM read_parquet(?, file_row_number = true)"
            params: list[object] = [shard.first_row, self._file(shard.folder, name)]
            if len(inside) <= _INLINE_ROWS:
                marks = ", ".join("?" * len(inside))
                out += self.database.rows(f"{select} WHERE file_row_number IN ({marks})", params + inside.tolist())
            else:
                sql = f"{select} SEMI JOIN wanted ON file_row_number = wanted.row"
                out += self.database.rows(sql, params, wanted={"row": inside})
        if len(out) != len(wanted):
            raise BrokenSnapshot("snapshot_broken", "the snapshot has fewer rows than its manifest says")
        return out

    def _message(self, row: int, values: Sequence[Any]) -> Message:
        narrow, manifest = self.narrow, self.manifest
        message_id, thread_id, topic, body, link, edited_at, attributes = values
        conversation_id, conversation, _ = manifest.conversations[narrow.conversation[row]]
        author_id, author, _ = manifest.authors[narrow.author[row]]
        to_role, status = int(narrow.to_role[row]), int(narrow.status[row])
        return Message(
            row=row,
            message_id=message_id,
            conversation_id=conversation_id,
            conversation=conversation,
            thread_id=thread_id,
            sent_at=int(narrow.sent_at([row])[0]),
            author_id=author_id,
            author=author,
            from_role=manifest.roles[narrow.from_role[row]][0],
            to_role=manifest.to_roles[to_role][0] if to_role >= 0 else None,
            kind=manifest.kinds[narrow.kind[row]][0],
            status=manifest.statuses[status][0] if status >= 0 else None,
            topic=topic,
            body=body,
            link=link,
            edited_at=edited_at,
            attributes=attributes,
        )


def open_corpus(store: SnapshotFiles, snapshot_id: str, database: Statements) -> Corpus:
    """Open a snapshot whose files are what its manifest says; raises as `whole_manifest`."""
    return Corpus(whole_manifest(store, snapshot_id), store.prefix(snapshot_id), database)


def whole_manifest(store: SnapshotFiles, snapshot_id: str) -> Manifest:
    """A snapshot's manifest, after its files were compared with it as far as the store can without reading them all.

    Raises:
        NotFound: `no_snapshot`.
        BrokenSnapshot: `snapshot_newer`, `snapshot_older`, `snapshot_broken`.
        Unavailable: the store cannot be reached.
    """
    manifest = Manifest.from_bytes(store.read(check_snapshot_id(snapshot_id), MANIFEST))
    altered = store.altered(snapshot_id, manifest.files)
    if altered:
        raise BrokenSnapshot(
            "snapshot_broken",
            f"{len(altered)} of {len(manifest.files)} files of the snapshot are missing or not what its manifest says: "
            + ", ".join(altered[:_NAMED_FILES]),
            next_step="run verify, refresh, or roll back to an older snapshot",
        )
    return manifest
