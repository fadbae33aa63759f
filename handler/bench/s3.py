"""What a cold process fetches from S3 until its first answer: requests and bytes, counted between it and the store.

Decides the steps: each begins in a new process, some go on in the same. Beside them stand the same first answer by a
scan, and fetching the SQLite file whole, which is what it takes to ask SQLite. Must never know how anything is read.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3

from handler.bench import fts5, hayfork
from handler.bench.corpora import kept
from handler.bench.processes import one_process
from handler.bench.queries import StandardQuery
from handler.bench.run import FTS5, OURS, Asked, Told, standard_queries
from handler.bench.s3_server import KEY, SECRET, CountingProxy, counting_proxy, seaweedfs
from handler.settings import Settings
from handler.settings_table import AwsSettings, CorpusSettings
from handler.wiring import build_snapshots, system_clock

__all__ = ["measure"]

_BUCKET = "bench"
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}

_SPARE_PORT = "http://127.0.0.1:9"
"""Nothing listens there: searches are answered unrecorded, and no session store mixes into the count."""


def measure(asked: Asked, told: Told) -> dict[str, Any]:
    """The steps with their requests, bytes and share of the snapshot's bytes.

    Raises:
        Unavailable: `bench_failed` when SeaweedFS is not installed or does not start.
    """
    root, built = kept(asked.folder, OURS, asked.messages, asked.seed, hayfork.build)
    database, _ = kept(asked.folder, FTS5, asked.messages, asked.seed, fts5.build, ("handler/bench/fts5.py",))
    queries = {query.name: query for query in standard_queries(asked).queries}
    file = database / fts5.FILE
    told("over S3")
    with (
        TemporaryDirectory(prefix="hayfork-") as folder,
        seaweedfs(Path(folder)) as endpoint,
        counting_proxy(endpoint) as proxy,
    ):
        _upload(endpoint, root)
        steps = []
        for name in ("rare", "middling", "common"):
            steps += _session(proxy, queries[name], brute=False)
        steps += _session(proxy, queries["middling"], brute=True)[:1]
    sqlite_size = file.stat().st_size
    steps.append({"name": "fetching the SQLite file", "requests": 1, "bytes": sqlite_size})
    return {
        "messages": asked.messages,
        "snapshot_bytes": built.all_bytes,
        "steps": [{**step, "share": round(step["bytes"] / built.all_bytes, 5)} for step in steps],
    }


def _session(proxy: CountingProxy, query: StandardQuery, *, brute: bool) -> list[dict[str, Any]]:
    """A new process that counts, reads eight excerpts, and counts once more."""
    counting, reading = hayfork.count_event(query), hayfork.search_event(query)
    calls: Sequence[tuple[str, bytes]] = (
        (f"{query.name}: first count{' by scan' if brute else ''}", counting),
        (f"{query.name}: then eight excerpts", reading),
        (f"{query.name}: then the same count", counting),
    )
    steps = []
    with one_process() as pool:
        pool.submit(_prepare, proxy.endpoint, brute=brute).result()
        for name, event in calls[: 1 if brute else None]:
            before = proxy.counted
            pool.submit(_ask, event).result()
            took = proxy.counted - before
            steps.append({"name": name, "requests": took.requests, "bytes": took.bytes})
    return steps


_ASK: list[Callable[[bytes], bytes]] = []
"""In a process of `_session`: what answers."""


def _prepare(endpoint: str, *, brute: bool) -> None:
    """Set the process up; it has asked the store nothing yet."""
    os.environ.update(_ENVIRONMENT)
    app = hayfork.app_over(f"s3://{_BUCKET}/corpus", aws=_aws(endpoint))
    _ASK.append(hayfork.Hayfork(app, brute=brute).call)


def _ask(event: bytes) -> None:
    _ASK[0](event)


def _upload(endpoint: str, root: Path) -> None:
    """Publish the snapshot of a folder, as a refresh does."""
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=_BUCKET)
    client.close()
    with one_process() as pool:
        pool.submit(_publish, endpoint, root).result()


def _publish(endpoint: str, root: Path) -> None:
    os.environ.update(_ENVIRONMENT)
    settings = Settings(corpus=CorpusSettings(root=f"s3://{_BUCKET}/corpus"), aws=_aws(endpoint))
    snapshot_id = hayfork.manifest_of(root).snapshot_id
    build_snapshots(settings, system_clock).publish(snapshot_id, root / "snapshots" / snapshot_id, None)


def _aws(endpoint: str) -> AwsSettings:
    return AwsSettings(seen_table="none", region="us-east-1", s3_endpoint=endpoint, dynamodb_endpoint=_SPARE_PORT)
