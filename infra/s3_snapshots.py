"""Snapshots in S3, read in place by DuckDB.

Decides how a snapshot gets in whole or not at all: its files go up under its own id, manifest last, are
compared with a listing, and CURRENT is replaced last by a conditional put. What happened is read back
whenever an answer was lost. Must never know what a snapshot says.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from secrets import SystemRandom
from typing import cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import duckdb

from engine.errors import EngineError, Unavailable
from engine.snapshot.format import CURRENT, MANIFEST, FileEntry
from engine.watch import go_on
from infra.aws import error_code, unreachable
from infra.layout import (
    check_file_name,
    conflict,
    no_snapshot,
    pinned_from_json,
    pointer_from_json,
    pointer_to_json,
    snapshot_folder,
)
from infra.s3 import Bucket, BucketSettings, Listed
from infra.s3_seal import SEAL, altered_files, seal_of

__all__ = ["S3Snapshots", "load_httpfs"]

_POINTER_ATTEMPTS = 5
_UPLOADS_AT_ONCE = 4
_CHUNK_BYTES = 2**20

_LOST_RACE = {
    "PreconditionFailed",
    "412",
    "ConditionalRequestConflict",
    "OperationAborted",
    "409",
    "NoSuchKey",
    "404",
}
"""Answers to a conditional put that say: read again. S3 answers 409 while another put is under way."""

_UNCLEAR = {
    "",
    "RequestTimeout",
    "InternalError",
    "ServiceUnavailable",
    "SlowDown",
    "500",
    "502",
    "503",
    "504",
}
"""Answers, or none, after which the put may have happened or not."""

_CREDENTIALS = """
CREATE OR REPLACE TEMPORARY SECRET hayfork (
    TYPE s3, SCOPE $scope, KEY_ID $key, SECRET $secret, SESSION_TOKEN $token, REGION $region,
    ENDPOINT $endpoint, URL_STYLE $style, USE_SSL $tls
)
"""

_SETTINGS = (
    # Each for the whole instance: a plain SET is the connection's own, and statements run on cursors of it.
    # An HTTP API hangs up after 30 seconds: two tries of five leave time for an answer that says so.
    "SET GLOBAL http_retries = 1",
    # No object of a snapshot changes under its name: one HEAD is enough for all who read it at once.
    "SET GLOBAL enable_http_metadata_cache = true",
    # Only the secret made here, never keys that DuckDB finds by itself.
    "SET GLOBAL enable_global_s3_configuration = false",
    # Names of files are names: no globs, no parameters in them.
    "SET GLOBAL s3_url_compatibility_mode = true",
    "SET GLOBAL enable_server_cert_verification = true",
)


class _InDoubtError(Unavailable):
    """CURRENT may name the new snapshot or not: its files must stay."""


@dataclass(frozen=True, slots=True)
class _Pointer:
    """What CURRENT says, and the condition under which a put replaces just that."""

    snapshot_id: str | None
    pinned: bool
    condition: dict[str, str]


class S3Snapshots:
    """A `SnapshotStore` in a bucket.

    Files without a manifest are removed `grace_seconds` after their last change: no publish pauses for so
    long between two files. `clock` gives seconds since 1970, `sleep` waits seconds.
    """

    def __init__(
        self,
        settings: BucketSettings,
        *,
        grace_seconds: float = 6 * 3_600,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bucket = Bucket(settings)
        self._grace_seconds = grace_seconds
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._seals: dict[str, str] = {}
        self._installed: WeakKeyDictionary[duckdb.DuckDBPyConnection, object] = WeakKeyDictionary()

    @property
    def location(self) -> str:
        """What all prefixes begin with: the one location a reader needs access to."""
        return f"{self._bucket.url}snapshots/"

    def current(self) -> str | None:
        """Id of the current snapshot, `None` before the first."""
        return self._pointer().snapshot_id

    def pinned(self) -> bool:
        """Whether the current snapshot is pinned."""
        return self._pointer().pinned

    def read(self, snapshot_id: str, name: str) -> bytes:
        """The whole of one small file of a snapshot."""
        found = self._bucket.get(snapshot_folder(snapshot_id) + check_file_name(name))
        if found is None:
            raise no_snapshot()
        if name == MANIFEST:
            # What is noted on it comes with it, and saves a request when its files are compared.
            self._seals[snapshot_id] = found.notes.get(SEAL, "")
        return found.data

    def prefix(self, snapshot_id: str) -> str:
        """The snapshot's URL, ending in `/`."""
        return self._bucket.url + snapshot_folder(snapshot_id)

    def sizes(self, snapshot_id: str) -> dict[str, int]:
        """Every file of a snapshot with its size in bytes; empty when there is none."""
        folder = snapshot_folder(snapshot_id)
        return {entry.name[len(folder) :]: entry.size for entry in self._bucket.list(folder)}

    def altered(self, snapshot_id: str, files: Sequence[FileEntry]) -> list[str]:
        """By one listing; see `infra.s3_seal`."""
        if snapshot_id not in self._seals:
            self.read(snapshot_id, MANIFEST)
        return altered_files(self._bucket, snapshot_folder(snapshot_id), files, self._seals[snapshot_id])

    def sha256(self, snapshot_id: str, name: str) -> str:
        """SHA-256 of one file as it is stored, in hex."""
        found = self._bucket.sha256(snapshot_folder(snapshot_id) + check_file_name(name))
        if found is None:
            raise no_snapshot()
        return found

    def prepare(self, connection: object) -> None:
        """Load httpfs, bound its waiting, and give it the credentials of the moment; before the lock."""
        reader = cast("duckdb.DuckDBPyConnection", connection)
        load_httpfs(reader)
        for setting in _SETTINGS:
            reader.execute(setting)
        reader.execute("SET GLOBAL http_timeout = ?", [max(1, ceil(self._bucket.settings.aws.timeout_seconds))])
        reader.execute("SET GLOBAL ca_cert_file = ?", [self._bucket.aws.certificates()])
        self.renew(reader)

    def renew(self, connection: object) -> None:
        """Replace a prepared connection's credentials if boto3 has newer ones, also after the lock.

        Costs nothing when nothing is new: call it before a statement.

        Raises:
            Unavailable: there are no credentials, or they cannot be fetched.
        """
        reader = cast("duckdb.DuckDBPyConnection", connection)
        credentials = self._bucket.aws.credentials()
        if self._installed.get(reader) == credentials:
            return
        client = self._bucket.client
        endpoint = urlsplit(client.meta.endpoint_url)
        path_style = self._bucket.settings.aws.endpoint_url or "." in self._bucket.settings.bucket
        secret = {
            "scope": self.location,
            "key": credentials.access_key,
            "secret": credentials.secret_key,
            "token": credentials.token or "",
            "region": client.meta.region_name,
            "endpoint": endpoint.netloc,
            "style": "path" if path_style else "vhost",
            "tls": endpoint.scheme == "https",
        }
        with self._lock:
            try:
                reader.cursor().execute(_CREDENTIALS, secret)
            except duckdb.Error:
                # Without its cause: the text of the statement's error may hold the keys.
                raise Unavailable("store_unreachable", "the credentials of the store were not accepted") from None
            self._installed[reader] = credentials

    def publish(self, snapshot_id: str, folder: Path, expected: str | None) -> None:
        """Upload `folder` and make it current; the folder stays as it is."""
        target = snapshot_folder(snapshot_id)
        files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if _is_plain_file(p)}
        if MANIFEST not in files:
            raise ValueError("a snapshot without a manifest cannot be published")
        held = self._listing()
        if self.current() != expected or snapshot_id in held:
            raise conflict()
        self._sweep(held)
        try:
            self._upload(target, files)
        except BaseException:
            self._drop(target)
            raise
        try:
            self._replace_pointer(snapshot_id, expected, published=True)
        except _InDoubtError:
            raise
        except EngineError:
            self._drop(target)
            raise

    def point(self, snapshot_id: str, expected: str | None, *, pinned: bool = False) -> None:
        """Make an existing snapshot current, pinned or not."""
        self.read(snapshot_id, MANIFEST)
        self._replace_pointer(snapshot_id, expected, pinned=pinned)

    def snapshots(self) -> list[str]:
        """Ids of all complete snapshots, oldest first."""
        return sorted(i for i, entries in self._listing().items() if _is_complete(i, entries))

    def delete(self, snapshot_id: str) -> None:
        """Remove a snapshot, its manifest first."""
        folder = snapshot_folder(snapshot_id)
        if self.current() != snapshot_id:
            self._remove(folder)

    def _pointer(self) -> _Pointer:
        found = self._bucket.get(CURRENT)
        if found is None:
            return _Pointer(None, False, {"IfNoneMatch": "*"})
        raw = found.data
        return _Pointer(pointer_from_json(raw), pinned_from_json(raw), {"IfMatch": found.etag})

    def _replace_pointer(
        self, snapshot_id: str, expected: str | None, *, pinned: bool = False, published: bool = False
    ) -> None:
        """Replace CURRENT if it is as expected; a published snapshot leaves a pinned one in place."""
        in_doubt = False
        for attempt in range(_POINTER_ATTEMPTS):
            try:
                found = self._pointer()
            except Unavailable as error:
                if in_doubt:
                    raise _doubtful(error) from error
                raise
            if attempt and found.snapshot_id == snapshot_id and (published or found.pinned == pinned):
                return
            if found.snapshot_id != expected:
                raise conflict()
            if published and found.pinned:
                return
            try:
                self._bucket.put(CURRENT, pointer_to_json(snapshot_id, pinned=pinned), found.condition)
            except self._bucket.aws.failures as error:
                code = error_code(error)
                in_doubt = in_doubt or code in _UNCLEAR
                if code not in _LOST_RACE | _UNCLEAR:
                    failure = unreachable(error)
                    raise _doubtful(failure) if in_doubt else failure from error
            else:
                return
            self._sleep(SystemRandom().uniform(0.02, 0.1) * 2**attempt)
        failure = Unavailable(
            "store_unreachable", "the new snapshot could not be made current", next_step="refresh again"
        )
        raise _doubtful(failure) if in_doubt else failure

    def _upload(self, target: str, files: dict[str, Path]) -> None:
        def send(name: str, **headers: dict[str, str]) -> None:
            upload = self._bucket.upload(target + name, **headers)
            try:
                with files[name].open("rb") as file:
                    while chunk := file.read(_CHUNK_BYTES):
                        go_on()
                        upload.write(chunk)
                upload.commit()
            finally:
                upload.abort()

        with ThreadPoolExecutor(_UPLOADS_AT_ONCE) as pool:
            list(pool.map(send, [name for name in files if name != MANIFEST]))
        listed = list(self._bucket.list(target))
        expected = {name: path.stat().st_size for name, path in files.items() if name != MANIFEST}
        found = {entry.name[len(target) :]: entry.size for entry in listed}
        if found != expected:
            raise Unavailable(
                "store_unreachable",
                f"of {len(expected)} files of the snapshot {len(found)} arrived whole",
                next_step="refresh again",
            )
        send(MANIFEST, Metadata={SEAL: seal_of(target, listed)})

    def _drop(self, target: str) -> None:
        # The reason for giving up matters more than what could not be removed: retention or a sweep does it.
        with suppress(EngineError):
            self._remove(target)

    def _remove(self, folder: str) -> None:
        names = [entry.name for entry in self._bucket.list(folder)]
        manifest = folder + MANIFEST
        if manifest in names:
            self._bucket.remove([manifest])
        self._bucket.remove(name for name in names if name != manifest)

    def _listing(self) -> dict[str, list[Listed]]:
        found: dict[str, list[Listed]] = defaultdict(list)
        for entry in self._bucket.list("snapshots/"):
            snapshot_id = entry.name.split("/")[1]
            with suppress(EngineError):
                snapshot_folder(snapshot_id)
                found[snapshot_id].append(entry)
        return dict(found)

    def _sweep(self, held: dict[str, list[Listed]]) -> None:
        horizon = self._clock() - self._grace_seconds
        for snapshot_id, entries in held.items():
            if not _is_complete(snapshot_id, entries) and max(e.changed_at for e in entries) < horizon:
                self._bucket.remove(e.name for e in entries)


def load_httpfs(connection: duckdb.DuckDBPyConnection) -> None:
    """Load DuckDB's httpfs from its package, offline; opens no socket and reads no credential.

    Raises:
        Unavailable: the package is missing or not of DuckDB's version.
    """
    spec = find_spec("duckdb_extension_httpfs")
    home = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    path = home / "extensions" / f"v{duckdb.__version__}" / "httpfs.duckdb_extension"
    if not path.is_file():
        raise Unavailable(
            "store_unreachable",
            f"duckdb {duckdb.__version__} needs duckdb-extension-httpfs of the same version",
            next_step="install both from the project's own requirements",
        )
    quoted_path = str(path.absolute()).replace("'", "''")
    connection.execute(f"LOAD '{quoted_path}'")


def _is_plain_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _is_complete(snapshot_id: str, entries: list[Listed]) -> bool:
    manifest = snapshot_folder(snapshot_id) + MANIFEST
    return any(entry.name == manifest for entry in entries)


def _doubtful(error: Unavailable) -> _InDoubtError:
    return _InDoubtError(error.code, error.message, next_step=error.next_step, detail=error.detail)
