"""What the engine needs of the world: small protocols, and the values that cross them.

Each method says what it raises. Adapters live in `infra`, one module per technology; one suite in
`tests/contracts` holds all adapters of a port to the same behaviour. Ports must never mention a technology.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.model import SourceMessage, SourceReport
from engine.snapshot.format import FileEntry

__all__ = [
    "Batch",
    "Export",
    "ExportSink",
    "ExportStore",
    "Key",
    "KeyStore",
    "Progress",
    "SeenStore",
    "SnapshotStore",
    "Source",
]

Progress = Callable[[str, int, int | None], None]
"""Called with a step's name, how much is done, and of how much (`None` when not known)."""


class Source(Protocol):
    """Where messages come from."""

    @property
    def name(self) -> str:
        """A short name for reports and the manifest; no absolute path."""
        ...

    def digest(self) -> str:
        """A digest of everything that would be read: equal digests mean nothing to do.

        Raises:
            BadInput: `source_unreadable` when the location does not exist or is not of this format.
        """
        ...

    def messages(self, report: SourceReport) -> Iterator[SourceMessage]:
        """Every message once, in any order, filling `report` on the way.

        What is broken is named in the report and passed over.

        Raises:
            BadInput: `source_unreadable` when nothing at all can be read.
        """
        ...


class SnapshotStore(Protocol):
    """Immutable snapshots under one root, and the pointer to the current one."""

    def current(self) -> str | None:
        """Id of the current snapshot, `None` before the first.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def read(self, snapshot_id: str, name: str) -> bytes:
        """The whole of one small file of a snapshot, for example `manifest.json`.

        Raises:
            NotFound: `no_snapshot` when there is no such snapshot or file.
            Unavailable: the store cannot be reached.
        """
        ...

    def prefix(self, snapshot_id: str) -> str:
        """What DuckDB reads the snapshot's files under: a folder or a URL, ending in `/`."""
        ...

    def sizes(self, snapshot_id: str) -> dict[str, int]:
        """Every file of a snapshot with its size in bytes, names relative to its prefix.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def altered(self, snapshot_id: str, files: Sequence[FileEntry]) -> list[str]:
        """Names of those files that are missing or not what their entries say, as far as a look at opening may cost.

        Sizes tell, and checksums: those the store keeps, or those of files at hand that counts are made of. For sure
        only `sha256` tells.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def sha256(self, snapshot_id: str, name: str) -> str:
        """SHA-256 of one file as it is stored, in hex, read in pieces.

        Raises:
            NotFound: `no_snapshot` when there is no such snapshot or file.
            Unavailable: the store cannot be reached.
        """
        ...

    @property
    def location(self) -> str:
        """What every prefix begins with: all that a reader needs access to."""
        ...

    def prepare(self, connection: object) -> None:
        """Make a DuckDB connection able to read `prefix`, before it is locked down."""
        ...

    def renew(self, connection: object) -> None:
        """Renew what `prepare` gave, where it runs out; cheap, called before every use."""
        ...

    def publish(self, snapshot_id: str, folder: Path, expected: str | None) -> None:
        """Bring `folder` in as the snapshot, whole, and make it current if `expected` still is.

        Until the last step readers see nothing of it. On any failure nothing of it remains reachable. While the
        current snapshot is pinned it stays current: the new one is then brought in and no more.

        Raises:
            Refused: `refresh_conflict` when another snapshot became current meanwhile.
            Unavailable: the store cannot be reached or is full.
        """
        ...

    def pinned(self) -> bool:
        """Whether the current snapshot stays current whatever is published.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def point(self, snapshot_id: str, expected: str | None, *, pinned: bool = False) -> None:
        """Make an existing snapshot current (roll back), and pin it there, or end a pin.

        Both are one write: no publish comes between them.

        Raises:
            NotFound: `no_snapshot`.
            Refused: `refresh_conflict`.
            Unavailable: the store cannot be reached.
        """
        ...

    def snapshots(self) -> list[str]:
        """Ids of all complete snapshots, oldest first (an id starts with its time)."""
        ...

    def delete(self, snapshot_id: str) -> None:
        """Remove a snapshot, its manifest first. Deleting what is not there, or is current, does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """What one call showed in a session.

    `number` counts from 1; `parent` is the batch it follows. `digest` identifies tool and arguments.
    `shown`, `around` and `groups` are packed big-endian 8-byte keys: hits in the order shown, further messages
    shown around them, and copy groups merged into a hit. Times are microseconds since 1970, UTC.
    """

    number: int
    parent: int
    caller_id: str
    digest: str
    made_at: int
    started_at: int
    shown: bytes = b""
    around: bytes = b""
    groups: bytes = b""


class SeenStore(Protocol):
    """Seen-sets: the batches of each session, written once and never changed."""

    def batches(self, session: str) -> list[Batch]:
        """All batches of a session in order of number, strongly consistent; empty when there is none.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def claim(self, session: str, batch: Batch, expires_at: int) -> bool:
        """Write `batch` if its number is free; false when another call took it. Gone after `expires_at`.

        Raises:
            Unavailable: the store cannot be reached. The batch may then have been written or not.
        """
        ...


@dataclass(frozen=True, slots=True)
class Export:
    """An export and how far it is. `state` is `running`, `done` or `failed`; times in microseconds UTC.

    `request` is what was asked, as JSON, so that another process can go on with it.
    """

    export_id: str
    caller_id: str
    format: str
    state: str
    created_at: int
    expires_at: int
    rows: int = 0
    size: int = 0
    sha256: str = ""
    request: str = ""


class ExportSink(Protocol):
    """A file being written. Until `commit` nobody can read it; after `abort` nothing of it is left."""

    def write(self, data: bytes) -> None:
        """Append.

        Raises:
            Unavailable: the store cannot be reached or is full.
        """
        ...

    def commit(self) -> None:
        """Make the file readable, whole.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def abort(self) -> None:
        """Throw away what was written; never raises."""
        ...


class ExportStore(Protocol):
    """Exports: their files, and the record of each."""

    def put(self, export: Export) -> None:
        """Write or replace an export's record.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def get(self, export_id: str) -> Export | None:
        """An export's record, `None` when there is none or it was revoked.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def sink(self, export: Export) -> ExportSink:
        """A new file for an export.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def link(self, export: Export) -> str:
        """What the caller is given to fetch the file by."""
        ...

    def revoke(self, export_id: str) -> None:
        """Make the link dead and remove the file; nothing happens when there is none."""
        ...

    def expired(self, now: int) -> Sequence[str]:
        """Ids of exports whose time is over, for a sweep."""
        ...


@dataclass(frozen=True, slots=True)
class Key:
    """An API key as it is kept: the SHA-256 of its secret, never the secret. Times are microseconds since 1970, UTC.

    `name` is whom it speaks for: sessions and exports belong to the name, so they outlive one key. From `expires_at`
    and from `revoked_at` on it opens nothing. `used_at` is about when it last did.
    """

    key_id: str
    name: str
    digest: bytes
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    used_at: int | None = None

    def opens(self, now: int) -> bool:
        """Whether it is neither expired nor revoked."""
        return all(end is None or now < end for end in (self.expires_at, self.revoked_at))


class KeyStore(Protocol):
    """API keys, by their public ids."""

    def add(self, key: Key) -> bool:
        """Keep a new key; false when its id is taken.

        Raises:
            Unavailable: the store cannot be reached. The key may then be kept or not.
        """
        ...

    def get(self, key_id: str) -> Key | None:
        """A key as it is now, `None` when there is none.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def all_keys(self) -> list[Key]:
        """Every key, oldest first.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def revoke(self, key_id: str, at: int) -> bool:
        """Have a key open nothing from `at` on, which may be to come; an earlier instant stays. False: no such key.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def used(self, key_id: str, at: int) -> None:
        """Note a use; an earlier one than is noted, or of a key that is not there, changes nothing.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...
