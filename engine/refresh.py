"""A refresh: sources read, a snapshot built beside the current one, checked, and published whole.

Decides the order of steps, what a report says, and which old snapshots go. Dies anywhere without harm: until the last
step of publishing nothing a reader sees has changed.
"""

import hashlib
import secrets
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import BrokenSnapshot, EngineError, NotFound
from engine.limits import Retention
from engine.model import SourceMessage, SourceReport
from engine.ports import Progress, SnapshotStore, Source
from engine.redaction import FORMS_DIGEST, redacted
from engine.snapshot.database import Database, DatabaseSettings, connect, failures_told, uncompressed
from engine.snapshot.format import FORMAT_VERSION, MANIFEST, FileEntry, Manifest
from engine.snapshot.open import open_corpus, whole_manifest
from engine.snapshot.scratch import scratch
from engine.snapshot.stage import stage
from engine.snapshot.write import Stamp, write
from engine.times import SECOND, iso, to_datetime
from engine.watch import go_on, interrupting

__all__ = ["Build", "refresh", "sources_digest", "sweep", "verify"]

_SHOWN_PROBLEMS = 20
_MORE_ROOM = "raise duckdb.memory_limit, or free the temporary folder"


@dataclass(frozen=True, slots=True)
class Build:
    """What a refresh needs beside its sources.

    `now` is microseconds since 1970, UTC; `rules` digests the role rules. `redact` leaves no secret in what is stored.
    """

    now: int
    hayfork: str
    database: DatabaseSettings
    retention: Retention
    work: Path | None = None
    rules: str = ""
    shard_rows: int = 1_000_000
    redact: bool = True


def sources_digest(sources: Sequence[Source], rules: str, *, redact: bool) -> list[dict[str, str]]:
    """Name and digest of each source: equal means nothing to do.

    The role rules, our own format and the forms of secrets are part of it: they change what is stored.
    """
    ours = f"{rules}\0{FORMS_DIGEST if redact else ''}"
    return [
        {
            "name": source.name,
            "digest": hashlib.sha256(f"{FORMAT_VERSION}\0{source.digest()}\0{ours}".encode()).hexdigest(),
        }
        for source in sources
    ]


def refresh(
    sources: Sequence[Source], store: SnapshotStore, build: Build, progress: Progress, *, force: bool = False
) -> dict[str, Any]:
    """Build and publish a snapshot of all sources; `force` also when nothing changed.

    Returns the report: `snapshot`, `published`, the secrets redacted by kind, and per source what was read, stored,
    skipped and why.

    Between steps, and within long ones, it asks whether it may go on (`engine.watch`).

    Raises:
        BadInput: `source_unreadable`.
        Refused: `refresh_conflict` when another refresh came first.
        Unavailable, BrokenSnapshot: nothing was published.
    """

    def noted(step: str, done: int, total: int | None) -> None:
        progress(step, done, total)
        go_on()

    expected = store.current()
    digests = sources_digest(sources, build.rules, redact=build.redact)
    # What is pinned is old on purpose: there is nothing to do when the newest snapshot holds what the sources do.
    pinned = store.pinned()
    newest = max(store.snapshots(), default=expected) if pinned else expected
    if newest is not None and not force and _unchanged(store, newest, digests):
        return {"snapshot": newest, "published": False, "why": "no source changed", **_pin(expected, pinned=pinned)}
    before = _rows(store, newest) if newest is not None else 0
    snapshot_id = f"{to_datetime(build.now):%Y%m%dT%H%M%S.%fZ}-{secrets.token_hex(4)}"
    with failures_told(_MORE_ROOM), tempfile.TemporaryDirectory(prefix="refresh-", dir=scratch(build.work)) as work:
        folder = Path(work) / snapshot_id
        folder.mkdir()
        reports = [SourceReport() for _ in sources]
        spill = build.database.temp_folder or build.work or Path(tempfile.gettempdir())
        settings = replace(build.database, temp_folder=spill)
        connection = connect(settings, [f"{work}/"], uncompressed, f"{work}/build.duckdb")
        try:
            with interrupting(connection.interrupt):
                for done in stage(connection, _all(sources, reports, redact=build.redact)):
                    # No source knows how much it holds; most hold little more than last time.
                    noted("reading messages", done, before if done <= before else None)
                told = [{**digest, **_told(report)} for digest, report in zip(digests, reports, strict=True)]
                stamp = Stamp(snapshot_id, build.now, build.hayfork, tuple(told), build.shard_rows)
                manifest, duplicates = write(connection, folder, stamp, noted)
        finally:
            connection.close()
        noted("checking", 0, None)
        _check_readable(folder, manifest, build.database)
        noted("publishing", 0, None)
        store.publish(snapshot_id, folder, expected)
    swept = _swept(store, build)
    return {
        "snapshot": snapshot_id,
        "published": True,
        **_pin(expected, pinned=pinned),
        "messages": manifest.rows,
        "kinds": dict(manifest.kinds),
        "roles": dict(manifest.roles),
        "conversations": len(manifest.conversations),
        "first": iso(manifest.first) if manifest.first is not None else None,
        "last": iso(manifest.last) if manifest.last is not None else None,
        "bytes": sum(entry.size for entry in manifest.files),
        "duplicates": duplicates,
        "redacted": dict(sum((report.redacted for report in reports), Counter()).most_common())
        if build.redact
        else "off",
        "sources": told,
        "removed_snapshots": swept,
    }


def _rows(store: SnapshotStore, snapshot_id: str) -> int:
    try:
        return Manifest.from_bytes(store.read(snapshot_id, MANIFEST)).rows
    except EngineError:
        return 0


def _pin(current: str | None, *, pinned: bool) -> dict[str, Any]:
    return {"pinned": current} if pinned else {}


def _swept(store: SnapshotStore, build: Build) -> list[str]:
    try:
        return sweep(store, build.retention, build.now)
    except EngineError:
        return []  # the new snapshot stands; what should have gone goes next time


def _unchanged(store: SnapshotStore, current: str, digests: Sequence[dict[str, str]]) -> bool:
    try:
        manifest = whole_manifest(store, current)
    except EngineError:
        return False  # a broken current snapshot is best replaced
    return [{"name": s["name"], "digest": s["digest"]} for s in manifest.sources] == list(digests)


def _all(sources: Sequence[Source], reports: Sequence[SourceReport], *, redact: bool) -> Iterator[SourceMessage]:
    for source, report in zip(sources, reports, strict=True):
        messages = source.messages(report)
        yield from redacted(messages, report.redacted) if redact else messages


def _told(report: SourceReport) -> dict[str, Any]:
    return {
        "read": report.read,
        "taken": report.yielded,
        "skipped": dict(report.skipped.most_common()),
        "redacted": dict(report.redacted.most_common()),
        "problem_count": report.problem_count,
        "problems": [asdict(problem) for problem in report.problems[:_SHOWN_PROBLEMS]],
    }


def _check_readable(folder: Path, manifest: Manifest, settings: DatabaseSettings) -> None:
    """Open what was written as a reader would, before anyone is pointed at it."""
    prefix = f"{folder}/"
    database = Database(connect(settings, [prefix]), seconds=300)
    try:
        corpus = open_corpus(_Unpublished(folder), manifest.snapshot_id, database)
        if corpus.rows:
            corpus.messages([0, corpus.rows - 1])
    finally:
        database.close()


class _Unpublished:
    """A folder that is not yet a snapshot, as much of a store as opening one needs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, snapshot_id: str, name: str) -> bytes:  # noqa: ARG002 - there is but one
        return (self._folder / name).read_bytes()

    def altered(self, snapshot_id: str, files: Sequence[FileEntry]) -> list[str]:  # noqa: ARG002 - likewise
        return [entry.name for entry in files if (self._folder / entry.name).stat().st_size != entry.size]

    def prefix(self, snapshot_id: str) -> str:  # noqa: ARG002 - likewise
        return f"{self._folder}/"


def sweep(store: SnapshotStore, retention: Retention, now: int) -> list[str]:
    """Delete old snapshots, and say which."""
    current = store.current()
    oldest_in_grace = f"{to_datetime(now - retention.grace_seconds * SECOND):%Y%m%dT%H%M%S.%fZ}"
    removed = []
    snapshots = store.snapshots()
    for snapshot_id in snapshots[: max(0, len(snapshots) - retention.keep)]:
        if snapshot_id != current and snapshot_id < oldest_in_grace:
            store.delete(snapshot_id)
            removed.append(snapshot_id)
    return removed


def verify(store: SnapshotStore, progress: Progress) -> dict[str, Any]:
    """Rehash every file of the current snapshot and compare it with the manifest.

    Returns `{"snapshot", "files", "bytes", "rows"}`.

    Raises:
        NotFound: `no_snapshot` before the first refresh.
        BrokenSnapshot: `snapshot_broken`, naming the first files that differ.
    """
    current = store.current()
    if current is None:
        raise NotFound("no_snapshot", "there is no snapshot yet", next_step="run refresh")
    manifest = Manifest.from_bytes(store.read(current, MANIFEST))
    sizes = store.sizes(current)
    broken = []
    for done, entry in enumerate(manifest.files):
        progress("hashing files", done, len(manifest.files))
        if sizes.get(entry.name) != entry.size or store.sha256(current, entry.name) != entry.sha256:
            broken.append(entry.name)
    progress("hashing files", len(manifest.files), len(manifest.files))
    if broken:
        raise BrokenSnapshot(
            "snapshot_broken",
            f"{len(broken)} of {len(manifest.files)} files are not what the manifest says: {', '.join(broken[:5])}",
            next_step="refresh with force, or roll back to an older snapshot",
        )
    return {
        "snapshot": current,
        "files": len(manifest.files),
        "bytes": sum(entry.size for entry in manifest.files),
        "rows": manifest.rows,
    }
