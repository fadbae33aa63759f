"""The adapters under test, each with what its contract suite needs beside the port itself."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from engine.ports import Export, ExportStore, SeenStore, SnapshotStore
from infra.aws import AwsSettings
from infra.counting import CountingExports, CountingSeen, CountingSnapshots
from infra.dynamodb import PARTITION_KEY, SORT_KEY, DynamoSeen
from infra.localdir import LocalExports, LocalSnapshots
from infra.s3 import BucketSettings
from infra.s3_exports import S3Exports
from infra.s3_snapshots import S3Snapshots
from infra.sqlite import SqliteSeen
from tests.local_aws import LocalAws

__all__ = [
    "EXPORT_ADAPTERS",
    "NOON",
    "SEEN_ADAPTERS",
    "SNAPSHOT_ADAPTERS",
    "Clock",
    "Download",
    "ExportBench",
    "SeenBench",
    "SnapshotBench",
    "download",
    "export_bench",
    "new_bucket",
    "new_table",
    "seen_bench",
    "snapshot_bench",
]

NOON = 1_796_126_400_000_000
"""2026-12-01 12:00 UTC in microseconds."""


@dataclass
class Clock:
    """Time that moves when a test says so, in microseconds since 1970."""

    now: int = NOON

    def __call__(self) -> int:
        return self.now


@dataclass
class SeenBench:
    """`open` gives a store as another process would see it; `arguments` tell `claim_worker` which to open."""

    open: Callable[[], SeenStore]
    arguments: list[str]
    clock: Clock = field(default_factory=Clock)


@dataclass
class SnapshotBench:
    """`plant` writes a file below the root past the store; `names` lists every file there."""

    open: Callable[[], SnapshotStore]
    plant: Callable[[str, bytes], None]
    names: Callable[[], list[str]]
    arguments: list[str]


@dataclass
class ExportBench:
    """`fetch` gives what the holder of the link gets; `names` lists every file below the root."""

    open: Callable[[], ExportStore]
    fetch: Callable[[ExportStore, Export], bytes | None]
    names: Callable[[], list[str]]


def sqlite_seen(folder: Path) -> SeenBench:
    clock = Clock()
    path = folder / "state" / "seen.sqlite"
    return SeenBench(lambda: SqliteSeen(path, clock=clock), ["sqlite", str(path)], clock)


def local_snapshots(folder: Path) -> SnapshotBench:
    root = folder / "root"

    def plant(name: str, data: bytes) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)

    return SnapshotBench(lambda: LocalSnapshots(root), plant, lambda: _files(root), ["localdir", str(root)])


def local_exports(folder: Path) -> ExportBench:
    root = folder / "root"

    def fetch(store: ExportStore, export: Export) -> bytes | None:
        path = Path(store.link(export))
        return path.read_bytes() if path.exists() else None

    return ExportBench(lambda: LocalExports(root), fetch, lambda: _files(root))


def _files(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file() and p.name != "lock")


def new_bucket(aws: LocalAws, part_bytes: int = 5 * 2**20) -> BucketSettings:
    """A bucket of its own for one test, with a prefix in it."""
    name = f"hayfork-{os.urandom(6).hex()}"
    aws.s3().create_bucket(Bucket=name)
    return BucketSettings(name, "some/where/", part_bytes=part_bytes, aws=AwsSettings(endpoint_url=aws.s3_endpoint))


def new_table(aws: LocalAws) -> str:
    """A table of its own for one test, with the keys the adapter names."""
    name = f"seen-{os.urandom(6).hex()}"
    aws.dynamodb().create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": PARTITION_KEY, "KeyType": "HASH"},
            {"AttributeName": SORT_KEY, "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": PARTITION_KEY, "AttributeType": "S"},
            {"AttributeName": SORT_KEY, "AttributeType": "N"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


def dynamo_seen(aws: LocalAws) -> SeenBench:
    clock = Clock()
    table = new_table(aws)
    return SeenBench(
        lambda: DynamoSeen(table, endpoint_url=aws.dynamodb_endpoint, clock=clock),
        ["dynamodb", table, aws.dynamodb_endpoint],
        clock,
    )


def s3_snapshots(aws: LocalAws) -> SnapshotBench:
    settings = new_bucket(aws)

    def plant(name: str, data: bytes) -> None:
        aws.s3().put_object(Bucket=settings.bucket, Key=settings.prefix + name, Body=data)

    return SnapshotBench(
        lambda: S3Snapshots(settings, sleep=lambda _: None),
        plant,
        lambda: _keys(aws, settings),
        ["s3", settings.bucket, settings.prefix, aws.s3_endpoint],
    )


def s3_exports(aws: LocalAws) -> ExportBench:
    settings = new_bucket(aws)

    def fetch(store: ExportStore, export: Export) -> bytes | None:
        assert isinstance(store, S3Exports)
        found = download(store.presigned(export))
        assert found.status in {200, 404}
        return found.body if found.status == 200 else None

    return ExportBench(lambda: S3Exports(settings, "https://hayfork.example"), fetch, lambda: _keys(aws, settings))


@dataclass(frozen=True, slots=True)
class Download:
    """What came back for a URL: the status, the headers, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def download(url: str) -> Download:
    """A URL of a local server, fetched without keys."""
    try:
        with urlopen(url, timeout=10) as response:  # noqa: S310  # tests pass what the local server signed
            return Download(response.status, dict(response.headers), response.read())
    except HTTPError as error:
        with error:
            return Download(error.code, dict(error.headers), error.read())


def _keys(aws: LocalAws, settings: BucketSettings) -> list[str]:
    """Every object and every upload under way, below the prefix."""
    client = aws.s3()
    objects = client.list_objects_v2(Bucket=settings.bucket).get("Contents", [])
    uploads = client.list_multipart_uploads(Bucket=settings.bucket).get("Uploads", [])
    keys = [entry["Key"] for entry in (*objects, *uploads)]
    assert all(key.startswith(settings.prefix) for key in keys)
    return sorted(key.removeprefix(settings.prefix) for key in keys)


_AWS = pytest.mark.aws
SEEN_ADAPTERS = ["sqlite", "counting", pytest.param("dynamodb", marks=_AWS)]
SNAPSHOT_ADAPTERS = ["localdir", "counting", pytest.param("s3", marks=_AWS)]
EXPORT_ADAPTERS = ["localdir", "counting", pytest.param("s3", marks=_AWS)]


def seen_bench(request: pytest.FixtureRequest, folder: Path) -> SeenBench:
    """The adapter a fixture's parameter names; likewise the two below."""
    if request.param == "dynamodb":
        return dynamo_seen(_local_aws(request))
    bench = sqlite_seen(folder)
    return bench if request.param == "sqlite" else replace(bench, open=lambda: CountingSeen(bench.open()))


def snapshot_bench(request: pytest.FixtureRequest, folder: Path) -> SnapshotBench:
    if request.param == "s3":
        return s3_snapshots(_local_aws(request))
    bench = local_snapshots(folder)
    if request.param == "localdir":
        return bench
    return replace(bench, open=lambda: CountingSnapshots(bench.open(), "FileSystem"))


def export_bench(request: pytest.FixtureRequest, folder: Path) -> ExportBench:
    if request.param == "s3":
        return s3_exports(_local_aws(request))
    bench = local_exports(folder)
    return bench if request.param == "localdir" else replace(bench, open=lambda: CountingExports(bench.open()))


def _local_aws(request: pytest.FixtureRequest) -> LocalAws:
    # Asked for by name so that the servers start only for the adapters that need them.
    aws: LocalAws = request.getfixturevalue("local_aws")
    return aws
