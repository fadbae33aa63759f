"""A deployment of the tests whose servers stand behind proxies: two snapshots, a session, and what is right to answer.

The messages are few and all different, so that every message can be followed: shown, recorded, or still to come.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import duckdb
import pytest

from engine.answer import Answer
from engine.limits import Limits, Retention
from engine.ports import ExportStore, SeenStore, SnapshotStore
from engine.reader import SnapshotReader
from engine.requests import CountRequest, Criteria, ExportRequest, Request, SearchRequest, ThreadRequest, UnseenRequest
from engine.sight import Caller
from engine.snapshot import database
from engine.snapshot.database import DatabaseSettings
from engine.sources.tables import TableSource
from handler.local_app import LocalApp, Parts
from infra.aws import AwsSettings
from infra.dynamodb import DynamoSeen
from infra.localdir import LocalExports, LocalSnapshots
from infra.s3 import Bucket, BucketSettings
from infra.s3_exports import S3Exports
from infra.s3_snapshots import S3Snapshots
from infra.sqlite import SqliteSeen
from tests.contracts.benches import Clock
from tests.faults.proxy import Proxy
from tests.local_aws import LocalAws

__all__ = [
    "CALLER",
    "TOOLS",
    "Corpus",
    "Deployment",
    "Scene",
    "Stores",
    "asking",
    "folder_stores",
    "ids_of",
    "load_unchecked",
    "make_corpus",
    "plain",
    "plant_snapshots",
    "reset",
]

CALLER = Caller("tests")
TOOLS = ("count", "search", "unseen", "open", "export", "refresh")

_MATCHES = Criteria(query="docker")
_PAGE = 5
_SECONDS = 1.0
"""How long an adapter waits for a server here: a fifth of what it does by default."""
_LIMITS = Limits()
_COLUMNS = {
    "conversation_id": "conversation",
    "conversation": "conversation",
    "native_id": "message_id",
    "sent_at": "sent_at",
    "author_id": "author_id",
    "author": "author",
    "body": "text",
}


@dataclass(frozen=True, slots=True)
class Corpus:
    """A table of messages, two snapshots made of it in folders, the older without its last ten messages."""

    table: Path
    root: Path
    older: str
    newer: str
    matching: frozenset[str]
    right: dict[str, dict[str, Any]]
    """What each tool answers, by snapshot, without what names a session or an export."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The three stores of an application; `names` lists every file or object below their root past the adapters."""

    snapshots: SnapshotStore
    seen: SeenStore
    exports: ExportStore
    names: Callable[[], list[str]]
    plant: Callable[[str, bytes | None], None]
    """Writes a file below the root past the adapters, or removes it."""
    fetch: Callable[[str], bytes]
    """Reads one."""
    root: Path = Path()
    """Of stores in a folder."""


def make_corpus(folder: Path) -> Corpus:
    """The corpus in `folder`, and the right answers from it."""
    table = folder / "messages.jsonl"
    root = folder / "root"
    app = Scene(folder_stores(root), table, folder / "temp", Clock())
    ids = []
    for count in (50, 60):
        table.write_text("".join(json.dumps(_message(n)) + "\n" for n in range(count)), "utf-8")
        app.clock.now += 60_000_000
        ids.append(app.app.refresh()["snapshot"])
    right = {}
    for snapshot_id in ids:
        app.stores.snapshots.point(snapshot_id, app.stores.snapshots.current())
        right[snapshot_id] = {
            tool: plain(app.fresh().call(asking(tool, None), CALLER)) for tool in TOOLS if tool != "refresh"
        }
    matching = frozenset(f"c{n % 3}:{n}" for n in range(60))
    return Corpus(table, root, ids[0], ids[1], matching, right)


def _message(n: int) -> dict[str, object]:
    return {
        "conversation": f"c{n % 3}",
        "message_id": str(n),
        "sent_at": f"2026-11-{1 + n % 28:02}T10:{n % 60:02}:00Z",
        "author_id": f"U{n % 4}",
        "author": ("Ada", "Bo", "Chen", "Dora")[n % 4],
        "text": f"message number {n} says that docker failed with code {n * 7919}",
    }


def folder_stores(root: Path, *, busy_seconds: float = 0.3) -> Stores:
    """A laptop's stores below `root`."""

    def plant(name: str, data: bytes | None) -> None:
        path = root / name
        if data is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # A snapshot's files may be linked from elsewhere: those are to stay as they are.
        path.unlink(missing_ok=True)
        path.write_bytes(data)

    def names() -> list[str]:
        found = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
        return sorted(name for name in found if name != "lock" and not name.startswith("seen.sqlite"))

    seen = SqliteSeen(root / "seen.sqlite", busy_seconds=busy_seconds)
    return Stores(
        LocalSnapshots(root), seen, LocalExports(root), names, plant, lambda name: (root / name).read_bytes(), root
    )


@cache
def _boto3_session() -> boto3.Session:
    return boto3.Session()


class Deployment:
    """S3 and DynamoDB behind a proxy each, with one bucket and one table.

    Adapters are made for each prefix anew, but share what boto3 makes: its clients take longer than most tests.
    """

    def __init__(self, aws: LocalAws, s3: Proxy, dynamodb: Proxy, bucket: str, table: str) -> None:
        self.s3 = s3
        self.dynamodb = dynamodb
        self._aws = aws
        self.bucket = bucket
        self._seen = DynamoSeen(table, endpoint_url=dynamodb.endpoint, deadline_seconds=3 * _SECONDS)
        self._settings = AwsSettings(endpoint_url=s3.endpoint, timeout_seconds=_SECONDS)
        self._shared = Bucket(BucketSettings(bucket, aws=self._settings))
        for each in (self._seen._aws, self._shared.aws):
            # What a session has read of boto3's own files serves all: they take longer than most tests.
            each._new_session = _boto3_session

    def stores(self, prefix: str) -> Stores:
        """The stores below a prefix, as a process that has just started opens them."""
        client, bucket = self._aws.s3(), self.bucket
        settings = BucketSettings(bucket, prefix, aws=self._settings)
        snapshots = S3Snapshots(settings, sleep=lambda _: None)
        exports = S3Exports(settings, "https://hayfork.example")
        for each in (snapshots, exports):
            each._bucket.aws = self._shared.aws
            each._bucket.__dict__["client"] = self._shared.client

        def plant(name: str, data: bytes | None) -> None:
            if data is None:
                client.delete_object(Bucket=bucket, Key=prefix + name)
            else:
                client.put_object(Bucket=bucket, Key=prefix + name, Body=data)

        def fetch(name: str) -> bytes:
            return client.get_object(Bucket=bucket, Key=prefix + name)["Body"].read()

        def names() -> list[str]:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            return sorted(entry["Key"].removeprefix(prefix) for page in pages for entry in page.get("Contents", []))

        return Stores(snapshots, self._seen, exports, names, plant, fetch)


def plant_snapshots(stores: Stores, corpus: Corpus) -> None:
    """Both snapshots of the corpus, the newer current, as refreshes leave them."""
    if stores.root != Path():
        for path in sorted((corpus.root / "snapshots").rglob("*")):
            if path.is_file():
                stores.plant(path.relative_to(corpus.root).as_posix(), path.read_bytes())
        reset(stores, corpus)
        return
    before = None
    for snapshot_id in (corpus.older, corpus.newer):
        stores.snapshots.publish(snapshot_id, corpus.root / "snapshots" / snapshot_id, before)
        before = snapshot_id


def load_unchecked(patch: pytest.MonkeyPatch) -> None:
    """Have DuckDB load httpfs without hashing its 20 MB anew in every process there is here: no fault depends on it."""
    plain = duckdb.connect

    def connect(file: str, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
        return plain(file, config=config | {"allow_unsigned_extensions": True})

    theirs = ModuleType("duckdb")
    vars(theirs).update(vars(duckdb), connect=connect)
    patch.setattr(database, "duckdb", theirs)


def reset(stores: Stores, corpus: Corpus) -> None:
    """Take back what a refresh did."""
    stores.plant("CURRENT", b'{"snapshot": "%s"}' % corpus.newer.encode())
    for snapshot_id in set(stores.snapshots.snapshots()) - {corpus.older, corpus.newer}:
        stores.snapshots.delete(snapshot_id)


def asking(tool: str, session: str | None, *, limit: int = _PAGE, after_batch: int | None = None) -> Request:
    """What a tool is asked in these tests."""
    search = SearchRequest(_MATCHES, limit=limit, session=session)
    requests: dict[str, Request] = {
        "count": CountRequest(_MATCHES, by=("author",)),
        "search": search,
        "unseen": UnseenRequest(search, after_batch),
        "open": ThreadRequest(("c0:3",), session=session),
        "export": ExportRequest(_MATCHES),
    }
    return requests[tool]


@dataclass
class Scene:
    """An application over stores, as one process has it. `fresh` is the same in a process that has just started."""

    stores: Stores
    table: Path
    temp: Path
    clock: Clock = field(default_factory=Clock)
    database: DatabaseSettings | None = None
    limits: Limits = _LIMITS
    alarms: list[str] = field(default_factory=list)
    app: LocalApp = field(init=False)

    def __post_init__(self) -> None:
        self.app = self.fresh()

    def fresh(self) -> LocalApp:
        """The application with nothing opened."""
        settings = self.database or DatabaseSettings("256MB", 2, self.temp)
        stores = self.stores
        reader = SnapshotReader(stores.snapshots, settings, self.limits, self.alarms.append)
        self.app = LocalApp(
            Parts(
                name="messages",
                zone=UTC,
                limits=self.limits,
                clock=self.clock,
                snapshots=stores.snapshots,
                reader=reader,
                seen=stores.seen,
                exports=stores.exports,
                sources=lambda: [_source(self.table)],
                rules="",
                database=settings,
                retention=Retention(),
                version="0",
            )
        )
        return self.app

    @contextmanager
    def closing(self) -> Iterator["Scene"]:
        """Lets go of the connections at the end."""
        try:
            yield self
        finally:
            self.app.close()
            close = getattr(self.stores.seen, "close", None)
            if close is not None:
                close()

    def start_session(self) -> tuple[str, list[str]]:
        """A session that was shown one page, and the ids it was shown."""
        answer = self.app.call(asking("search", None), CALLER)
        return str(answer.object["session"]), ids_of(answer)


def _source(table: Path) -> TableSource:
    return TableSource(name="messages", format="jsonl", location=str(table), columns=_COLUMNS, roles={}, zone=UTC)


def ids_of(answer: Answer) -> list[str]:
    """The ids of the messages an answer shows."""
    return [str(message["id"]) for message in answer.object["messages"]]


def plain(answer: Answer) -> dict[str, Any]:
    """An answer's object without what differs from call to call."""
    passing = ("session", "batch", "link", "expires", "export", "seen_before", "repeated", "notes")
    return {name: value for name, value in answer.object.items() if name not in passing}
