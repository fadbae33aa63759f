"""Snapshots and exports in a folder of this machine.

Decides how a snapshot gets in whole or not at all: its files are gathered in `incoming/`, flushed, renamed
into `snapshots/` as one folder, and CURRENT is replaced last, under a lock that all processes of the root
share. What a dead publish left in `incoming/` is swept by a later one. Must never know what a snapshot says.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from engine.errors import BadInput, Unavailable
from engine.ports import Export
from engine.snapshot.format import COUNTED, CURRENT, MANIFEST, FileEntry, check_snapshot_id
from infra.layout import (
    EXPORT_RECORDS,
    check_file_name,
    conflict,
    export_from_json,
    export_name,
    export_record_name,
    export_to_json,
    no_snapshot,
    pinned_from_json,
    pointer_from_json,
    pointer_to_json,
    snapshot_folder,
)

__all__ = ["LocalExports", "LocalSnapshots"]

_HASHED_AT_ONCE = 4


class LocalSnapshots:
    """A `SnapshotStore` below the folder `root`, which need not exist yet.

    Leftovers of publishes that died go `grace_seconds` after their last change: no publish pauses for
    so long between two files. `clock` gives seconds since 1970, as file times are.
    """

    def __init__(self, root: Path, *, grace_seconds: float = 6 * 3_600, clock: Callable[[], float] = time.time) -> None:
        self._root = root.absolute()
        self._incoming = self._root / "incoming"
        self._snapshots = self._root / "snapshots"
        self._grace_seconds = grace_seconds
        self._clock = clock

    @property
    def location(self) -> str:
        """What all prefixes begin with: the one folder a reader needs access to."""
        return f"{self._snapshots}/"

    def current(self) -> str | None:
        """Id of the current snapshot, `None` before the first."""
        raw = self._pointer()
        return None if raw is None else pointer_from_json(raw)

    def pinned(self) -> bool:
        """Whether the current snapshot is pinned."""
        raw = self._pointer()
        return raw is not None and pinned_from_json(raw)

    def read(self, snapshot_id: str, name: str) -> bytes:
        """The whole of one small file of a snapshot."""
        path = self._folder(snapshot_id) / check_file_name(name)
        with _reachable():
            try:
                return path.read_bytes()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                raise no_snapshot() from None

    def prefix(self, snapshot_id: str) -> str:
        """The snapshot's folder, absolute, ending in `/`."""
        return f"{self._root}/{snapshot_folder(snapshot_id)}"

    def sizes(self, snapshot_id: str) -> dict[str, int]:
        """Every file of a snapshot with its size in bytes; empty when there is none."""
        folder = self._folder(snapshot_id)
        with _reachable():
            return {name: (folder / name).stat().st_size for name in _files(folder)}

    def altered(self, snapshot_id: str, files: Sequence[FileEntry]) -> list[str]:
        """By size, and by SHA-256 where counts are made of a file: a quarter of a snapshot, at a gigabyte a second."""
        sizes = self.sizes(snapshot_id)

        def is_altered(entry: FileEntry) -> bool:
            if sizes.get(entry.name) != entry.size:
                return True
            counted = entry.name.rpartition("/")[2] in COUNTED
            return counted and self.sha256(snapshot_id, entry.name) != entry.sha256

        with ThreadPoolExecutor(_HASHED_AT_ONCE) as pool:
            return [entry.name for entry, altered in zip(files, pool.map(is_altered, files), strict=True) if altered]

    def sha256(self, snapshot_id: str, name: str) -> str:
        """SHA-256 of one file as it is stored, in hex."""
        path = self._folder(snapshot_id) / check_file_name(name)
        with _reachable():
            try:
                with path.open("rb") as file:
                    return hashlib.file_digest(file, "sha256").hexdigest()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                raise no_snapshot() from None

    def prepare(self, connection: object) -> None:
        """DuckDB reads folders as it is."""

    def renew(self, connection: object) -> None:
        """A folder needs no credentials."""

    def publish(self, snapshot_id: str, folder: Path, expected: str | None) -> None:
        """Bring `folder` in and make it current. Its files may be linked: they must not be changed later."""
        target = self._folder(snapshot_id)
        staging = self._incoming / f"{snapshot_id}.{secrets.token_hex(4)}"
        with _reachable():
            names = _files(folder)
            if MANIFEST not in names:
                raise ValueError("a snapshot without a manifest cannot be published")
            self._snapshots.mkdir(parents=True, exist_ok=True)
            self._sweep()
            if self.current() != expected or target.exists():
                raise conflict()
            try:
                for name in (*(n for n in names if n != MANIFEST), MANIFEST):
                    _bring(folder / name, staging / name)
                for path in (staging, *(p for p in staging.rglob("*") if p.is_dir())):
                    _flush(path)
                with self._lock():
                    if self.current() != expected or target.exists():
                        raise conflict()
                    self._swap_in(staging, target)
            finally:
                shutil.rmtree(staging, ignore_errors=True)

    def point(self, snapshot_id: str, expected: str | None, *, pinned: bool = False) -> None:
        """Make an existing snapshot current, pinned or not."""
        folder = self._folder(snapshot_id)
        with _reachable():
            if not (folder / MANIFEST).is_file():
                raise no_snapshot()
            with self._lock():
                if self.current() != expected:
                    raise conflict()
                if not (folder / MANIFEST).is_file():
                    raise no_snapshot()
                self._replace_current(snapshot_id, pinned=pinned)

    def snapshots(self) -> list[str]:
        """Ids of all complete snapshots, oldest first."""
        with _reachable():
            return [entry.name for entry in self._entries() if (entry / MANIFEST).is_file()]

    def delete(self, snapshot_id: str) -> None:
        """Remove a snapshot, its manifest first."""
        folder = self._folder(snapshot_id)
        with _reachable():
            if not folder.exists():
                return
            with self._lock():
                if self.current() == snapshot_id:
                    return
                _remove(folder)

    def _pointer(self) -> bytes | None:
        with _reachable():
            try:
                return (self._root / CURRENT).read_bytes()
            except FileNotFoundError:
                return None

    def _folder(self, snapshot_id: str) -> Path:
        return self._root / snapshot_folder(snapshot_id)

    def _entries(self) -> list[Path]:
        found = []
        with suppress(FileNotFoundError):
            for entry in self._snapshots.iterdir():
                with suppress(BadInput):
                    check_snapshot_id(entry.name)
                    found.append(entry)
        return sorted(found)

    def _swap_in(self, staging: Path, target: Path) -> None:
        staging.rename(target)
        try:
            _flush(self._snapshots)
            if not self.pinned():
                self._replace_current(target.name)
        except BaseException:
            if self.current() != target.name:
                _remove(target)
            raise

    def _replace_current(self, snapshot_id: str, *, pinned: bool = False) -> None:
        self._incoming.mkdir(exist_ok=True)
        fresh = self._incoming / f"{CURRENT}.{secrets.token_hex(4)}"
        try:
            with fresh.open("xb") as file:
                file.write(pointer_to_json(snapshot_id, pinned=pinned))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._root / CURRENT)
        finally:
            fresh.unlink(missing_ok=True)
        # The new CURRENT is in force; should a power cut undo it, the old one comes back, as whole as this.
        with suppress(OSError):
            _flush(self._root)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        # Held for a comparison and two renames, never while files are copied: a wait is always short.
        with (self._root / "lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _sweep(self) -> None:
        horizon = self._clock() - self._grace_seconds
        with suppress(FileNotFoundError):
            for entry in self._incoming.iterdir():
                if _last_change(entry) < horizon:
                    shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
        for entry in self._entries():
            if not (entry / MANIFEST).is_file() and _last_change(entry) < horizon:
                shutil.rmtree(entry, ignore_errors=True)


class LocalExports:
    """An `ExportStore` below the folder `root`; links are absolute paths, and files their owner's alone.

    What a dead process left of a file is swept by the snapshots' publish, when both share a root.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def put(self, export: Export) -> None:
        """Write or replace an export's record."""
        sink = _LocalSink(self._root, self._root / export_record_name(export.export_id))
        try:
            sink.write(export_to_json(export))
            sink.commit()
        finally:
            sink.abort()

    def get(self, export_id: str) -> Export | None:
        """An export's record, `None` when there is none."""
        with _reachable():
            try:
                return export_from_json((self._root / export_record_name(export_id)).read_bytes())
            except FileNotFoundError:
                return None

    def sink(self, export: Export) -> "_LocalSink":
        """A new file for an export."""
        return _LocalSink(self._root, self._root / export_name(export))

    def link(self, export: Export) -> str:
        """The file's absolute path."""
        return str(self._root / export_name(export))

    def revoke(self, export_id: str) -> None:
        """Remove the file, then the record: a death in between leaves what a second call needs."""
        export = self.get(export_id)
        if export is None:
            return
        with _reachable():
            (self._root / export_name(export)).unlink(missing_ok=True)
            (self._root / export_record_name(export_id)).unlink(missing_ok=True)

    def expired(self, now: int) -> Sequence[str]:
        """Ids of exports whose time is over, first to expire first."""
        found = []
        with _reachable(), suppress(FileNotFoundError):
            for path in (self._root / EXPORT_RECORDS).iterdir():
                with suppress(FileNotFoundError):
                    export = export_from_json(path.read_bytes())
                    if export is not None and export.expires_at <= now:
                        found.append((export.expires_at, export.export_id))
        return [export_id for _, export_id in sorted(found)]


class _LocalSink:
    """A file in `incoming/` that takes its place when it is whole."""

    def __init__(self, root: Path, target: Path) -> None:
        self._target = target
        self._path = root / "incoming" / f"export.{secrets.token_hex(8)}"
        with _reachable():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = os.fdopen(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")

    def write(self, data: bytes) -> None:
        """Append."""
        with _reachable():
            self._file.write(data)

    def commit(self) -> None:
        """Make the file readable, whole."""
        with _reachable():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._target.parent.mkdir(parents=True, exist_ok=True)
            self._path.replace(self._target)
            _flush(self._target.parent)

    def abort(self) -> None:
        """Throw away what was written; nothing happens after `commit`."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


@contextmanager
def _reachable() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            "store_unreachable",
            "the folder of snapshots and exports cannot be used",
            next_step="check that it exists, may be written and is not full",
            detail=f"{type(error).__name__} {error.errno}",
        ) from error


def _files(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
    )


def _bring(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        # Another file system, or one without links.
        shutil.copyfile(source, target)
    _flush(target)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    (folder / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _last_change(path: Path) -> float:
    """Newest time of a folder and the folders in it; files keep the times of what they are linked to."""
    with suppress(FileNotFoundError):
        folders = [p for p in path.rglob("*") if p.is_dir()] if path.is_dir() else []
        return max(p.stat().st_mtime for p in (path, *folders))
    return float("inf")
