"""What the counting wrappers count, held against what was done."""

from pathlib import Path
from typing import Literal

import duckdb
import pytest

from engine.ports import Batch, Export, SnapshotStore
from engine.snapshot.database import Database, DatabaseSettings, connect
from engine.tally import counting
from infra.aws import Aws, AwsSettings
from infra.counting import CountingExports, CountingSeen, CountingSnapshots, CountingStatements, count_request
from infra.dynamodb import DynamoSeen
from infra.localdir import LocalExports, LocalSnapshots
from infra.s3_snapshots import S3Snapshots
from infra.sqlite import SqliteSeen
from tests.contracts.benches import NOON, new_bucket, new_table
from tests.local_aws import LocalAws

ID = "20261201T001500.000000Z-1a2b3c4d"
ROWS = 50_000


def published(store: SnapshotStore, folder: Path) -> int:
    """A snapshot of one Parquet file; gives its size."""
    built = folder / "built"
    built.mkdir()
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT range AS row, md5(range::VARCHAR) AS said FROM range({ROWS})")
        relation.write_parquet(str(built / "text.parquet"), row_group_size=2_048)
    (built / "manifest.json").write_bytes(b"{}")
    store.publish(ID, built, None)
    return (built / "text.parquet").stat().st_size


def counts_of(store: SnapshotStore, log: Literal["HTTP", "FileSystem"]) -> list[dict[str, int]]:
    """What reading all rows, a few rows, and the same few rows again counted."""
    counted = CountingSnapshots(store, log)
    connection = connect(DatabaseSettings("500MB", 2), [counted.location], counted.prepare)
    statements = CountingStatements(Database(connection, 20))
    location = counted.prefix(ID) + "text.parquet"
    found = []
    few = "SELECT row, said FROM read_parquet(?, file_row_number = true) WHERE file_row_number IN (5, 40000)"
    for sql in (few, few, "SELECT row, said FROM read_parquet(?)"):
        with counting() as tally:
            statements.arrays(sql, [location])
            counted.collect()
        found.append(dict(tally.counts))
    connection.close()
    with counting() as tally:
        counted.collect()
    assert not tally.counts, "a closed connection tells nothing and does no harm"
    return found


def test_statements_over_a_folder_count_their_rows_and_bytes(tmp_path: Path) -> None:
    store = LocalSnapshots(tmp_path / "root")
    size = published(store, tmp_path)
    few, again, every = counts_of(store, "FileSystem")
    assert {k: few[k] for k in ("statements", "rows_scanned")} == {"statements": 1, "rows_scanned": 2}
    assert 0 < few["bytes_scanned"] < size / 4
    assert 0 < again["bytes_scanned"] <= few["bytes_scanned"], "the footer is kept, a file is read again"
    assert every["rows_scanned"] == ROWS
    assert every["bytes_scanned"] >= size * 0.9


@pytest.mark.aws
def test_statements_over_s3_count_requests_and_bytes_as_duckdb_sent_them(local_aws: LocalAws, tmp_path: Path) -> None:
    settings = new_bucket(local_aws)
    store = S3Snapshots(settings)
    size = published(store, tmp_path)
    few, again, every = counts_of(store, "HTTP")
    assert (few["statements"], few["rows_scanned"]) == (1, 2)
    assert 3 <= few["s3_requests"] <= 6
    assert 0 < few["bytes_scanned"] < size / 4
    assert again == {"statements": 1, "rows_scanned": 2}, "what DuckDB keeps is not asked for again"
    assert every["bytes_scanned"] >= size * 0.7
    assert every["s3_requests"] >= 1


@pytest.mark.aws
def test_requests_of_boto3_are_counted_as_they_are_sent(local_aws: LocalAws) -> None:
    bucket = new_bucket(local_aws)
    client = Aws(AwsSettings(endpoint_url=local_aws.s3_endpoint, sent=count_request)).s3()
    seen = DynamoSeen(new_table(local_aws), endpoint_url=local_aws.dynamodb_endpoint, sent=count_request)
    with counting() as tally:
        client.put_object(Bucket=bucket.bucket, Key="a", Body=b"a")
        client.list_objects_v2(Bucket=bucket.bucket)
        seen.batches("s")
    assert dict(tally.counts) == {"s3_requests": 2, "dynamodb_requests": 1}


def test_a_batch_that_was_taken_is_a_conflict(tmp_path: Path) -> None:
    seen = CountingSeen(SqliteSeen(tmp_path / "seen.sqlite", clock=lambda: NOON))
    batch = Batch(number=1, parent=0, caller_id="a", digest="d", made_at=NOON, started_at=NOON)
    with counting() as tally:
        assert seen.claim("s", batch, NOON * 2)
        assert not seen.claim("s", batch, NOON * 2)
        assert len(seen.batches("s")) == 1
    assert dict(tally.counts) == {"seen_reads": 1, "seen_claims": 2, "batch_conflicts": 1}


def test_an_export_counts_calls_and_bytes(tmp_path: Path) -> None:
    exports = CountingExports(LocalExports(tmp_path))
    export = Export("k" * 43, "a", "jsonl", "running", NOON, NOON + 1)
    with counting() as tally:
        exports.put(export)
        sink = exports.sink(export)
        sink.write(b"12345")
        sink.write(b"678")
        sink.commit()
        sink.abort()
        assert exports.get(export.export_id) == export
        assert list(exports.expired(NOON + 2)) == [export.export_id]
        exports.revoke(export.export_id)
        assert exports.link(export).endswith(".jsonl")
    assert dict(tally.counts) == {"export_requests": 5, "export_bytes": 8}
