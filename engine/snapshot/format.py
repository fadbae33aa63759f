"""What a snapshot is on disk: names, columns, row groups, and the manifest as JSON.

    <root>/CURRENT                                {"snapshot": "<id>"}
    <root>/snapshots/<id>/manifest.json
    <root>/snapshots/<id>/0000/narrow.parquet     one shard of whole threads; rows of all its files correspond
    <root>/snapshots/<id>/0000/text.parquet
    <root>/snapshots/<id>/0000/folded.parquet
    <root>/snapshots/<id>/0000/terms.parquet      the index, where it was not left out: engine.snapshot.lexicon
    <root>/snapshots/<id>/0000/postings.parquet
    <root>/snapshots/<id>/0000/positions.parquet

Rows are sorted by conversation, thread start, thread, time, id, over all shards: a thread's rows are neighbours.
A row's number counts from the first shard on. Must never know how files are stored or who may read them.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.errors import BadInput, BrokenSnapshot

__all__ = [
    "COUNTED",
    "CURRENT",
    "FOLDED",
    "FORMAT_VERSION",
    "MANIFEST",
    "NARROW",
    "POSITIONS",
    "POSTINGS",
    "SCRIPTS",
    "TERMS",
    "TEXT",
    "FileEntry",
    "LexiconEntry",
    "Manifest",
    "Shard",
    "check_snapshot_id",
    "file_sha256",
]

FORMAT_VERSION = 2
"""Raised when a reader of the old version would answer wrongly. No other is read: a refresh makes it anew."""

CURRENT = "CURRENT"
MANIFEST = "manifest.json"
NARROW = "narrow.parquet"
TEXT = "text.parquet"
FOLDED = "folded.parquet"
TERMS = "terms.parquet"
POSTINGS = "postings.parquet"
POSITIONS = "positions.parquet"

COUNTED = (NARROW, TERMS, POSTINGS, POSITIONS)
"""What counts are made of. A wrong bit here is a wrong count; what is shown of a text is checked by `engine.match`."""

SCRIPTS = (
    ("Chinese", r"\p{Han}"),
    ("Japanese", r"[\p{Hiragana}\p{Katakana}]"),
    ("Cyrillic", r"\p{Cyrillic}"),
    ("Arabic", r"\p{Arabic}"),
    ("Thai", r"\p{Thai}"),
    ("Korean", r"\p{Hangul}"),
    ("Greek", r"\p{Greek}"),
    ("Hebrew", r"\p{Hebrew}"),
    ("Devanagari", r"\p{Devanagari}"),
)
"""Writing systems an agent should know are there; bit n of the narrow column `scripts` is set where the n-th occurs."""

_SNAPSHOT_ID = re.compile(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{8}")


def check_snapshot_id(snapshot_id: str) -> str:
    """The id itself when it has the form `20261201T001500.000000Z-1a2b3c4d`: nothing else becomes part of a location.

    Raises:
        BadInput: `bad_snapshot_id`.
    """
    if not _SNAPSHOT_ID.fullmatch(snapshot_id):
        raise BadInput("bad_snapshot_id", "a snapshot id looks like 20261201T001500.000000Z-1a2b3c4d")
    return snapshot_id


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file: its name relative to the snapshot, size in bytes, rows, and SHA-256 in hex."""

    name: str
    size: int
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Shard:
    """One folder of files. `first_row` is the number of its first row in the whole snapshot."""

    folder: str
    first_row: int
    rows: int


@dataclass(frozen=True, slots=True)
class LexiconEntry:
    """Of one shard's index: integers per block; how many positions lie before each block of postings; how many planes a
    block has of rows, of frequencies, of positions.
    """

    block: int
    positions: tuple[int, ...]
    planes: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything a reader must know before it opens a file.

    `conversations` holds (id, name, count) in order of ordinal; `authors` (id, name, count) likewise, one for
    each pair of id and name; `roles`, `kinds`, `statuses` hold (value, count): the ordinal of a value
    is its place. `to_roles` likewise. Times are microseconds since 1970, UTC. `sources` holds name, digest and
    report of each source. `lexicons` holds an entry for each shard, or nothing where there is no index. `unicode` is
    the version of the tables that texts were folded by, empty where it is not known.
    """

    snapshot_id: str
    created_at: int
    hayfork: str
    rows: int
    threads: int
    copy_groups: int
    text_bytes: int
    first: int | None
    last: int | None
    shards: tuple[Shard, ...]
    files: tuple[FileEntry, ...]
    conversations: tuple[tuple[str, str, int], ...]
    authors: tuple[tuple[str, str, int], ...]
    roles: tuple[tuple[str, int], ...]
    to_roles: tuple[tuple[str, int], ...]
    kinds: tuple[tuple[str, int], ...]
    statuses: tuple[tuple[str, int], ...]
    sources: tuple[dict[str, Any], ...] = ()
    lexicons: tuple[LexiconEntry, ...] = ()
    unicode: str = ""
    version: int = FORMAT_VERSION

    def to_bytes(self) -> bytes:
        """Compact JSON in UTF-8, keys in the order of the fields, `version` first."""
        plain = asdict(self)
        return json.dumps(
            {"version": plain.pop("version"), **plain}, ensure_ascii=False, separators=(",", ":")
        ).encode()

    @classmethod
    def from_bytes(cls, raw: bytes) -> "Manifest":
        """Read what `to_bytes` wrote.

        Raises:
            BrokenSnapshot: `snapshot_newer` for a later format, `snapshot_older` for an earlier one, `snapshot_broken`
                for anything unreadable.
        """
        try:
            plain = json.loads(raw)
            version = int(plain["version"])
        except (ValueError, KeyError, TypeError) as error:
            raise BrokenSnapshot("snapshot_broken", "the manifest is not readable") from error
        if version > FORMAT_VERSION:
            raise BrokenSnapshot(
                "snapshot_newer",
                f"the snapshot has format {version}, this server reads up to {FORMAT_VERSION}",
                next_step="update the server, or roll back to an older snapshot",
            )
        if version < FORMAT_VERSION:
            raise BrokenSnapshot(
                "snapshot_older",
                f"the snapshot has format {version}, this server reads {FORMAT_VERSION}",
                next_step="refresh: the next snapshot has it",
            )
        try:
            plain["shards"] = tuple(Shard(**shard) for shard in plain["shards"])
            plain["files"] = tuple(FileEntry(**entry) for entry in plain["files"])
            for name in ("conversations", "authors", "roles", "to_roles", "kinds", "statuses"):
                plain[name] = tuple(tuple(row) for row in plain[name])
            plain["sources"] = tuple(plain["sources"])
            plain["lexicons"] = tuple(
                LexiconEntry(entry["block"], tuple(entry["positions"]), _planes(*entry["planes"]))
                for entry in plain.get("lexicons", ())
            )
            return cls(**plain)
        except (KeyError, TypeError) as error:
            raise BrokenSnapshot("snapshot_broken", "the manifest lacks what this format needs") from error


def _planes(rows: int, frequencies: int, positions: int) -> tuple[int, int, int]:
    if not (rows in range(1, 5) and frequencies in range(1, 6) and positions in range(1, 5)):
        raise TypeError("no integer of 32 bits has so many planes")
    return rows, frequencies, positions


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hex, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
