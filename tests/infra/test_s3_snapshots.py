"""What is particular to snapshots in S3: lost answers, races for CURRENT, credentials that change."""

import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import duckdb
import pytest
from botocore.credentials import ReadOnlyCredentials

from engine.deadline import ending_in
from engine.errors import NotFound, Refused, Unavailable
from engine.snapshot.format import FileEntry
from engine.watch import watched
from infra import s3_snapshots
from infra.aws import AwsSettings
from infra.s3 import BucketSettings
from infra.s3_snapshots import S3Snapshots
from tests.contracts.benches import new_bucket
from tests.local_aws import LocalAws, free_ports
from tests.lost_answers import answer_instead, before, lose_answers, lose_requests

pytestmark = pytest.mark.aws

FIRST = "20261201T001500.000000Z-1a2b3c4d"
SECOND = "20261201T003000.000000Z-00000000"
TEXT = "0000/text.parquet"
CONFLICT = "<Error><Code>ConditionalRequestConflict</Code><Message>again</Message></Error>"
DENIED = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
HOUR = 3_600.0


@pytest.fixture
def settings(local_aws: LocalAws) -> BucketSettings:
    return new_bucket(local_aws)


@pytest.fixture
def store(settings: BucketSettings) -> S3Snapshots:
    return S3Snapshots(settings, sleep=lambda _: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    built = tmp_path / "built"
    (built / "0000").mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.sql("SELECT range AS row FROM range(10)").write_parquet(str(built / "0000" / "text.parquet"))
    (built / "manifest.json").write_bytes(b"{}")
    return built


def once(settings: BucketSettings) -> S3Snapshots:
    """A store whose client tries each request once, so that only the adapter's own tries count."""
    aws = AwsSettings(endpoint_url=settings.aws.endpoint_url, attempts=1)
    plain = BucketSettings(settings.bucket, settings.prefix, aws=aws)
    return S3Snapshots(plain, sleep=lambda _: None)


def names(store: S3Snapshots) -> list[str]:
    return sorted(entry.name for entry in store._bucket.list(""))


def only_pointer(store: S3Snapshots, act: Callable[[], object]) -> None:
    """Arm a fault for the put of CURRENT alone: the last look of a publish at CURRENT comes just before it."""
    at_second(store, "GetObject", act)


def at_second(store: S3Snapshots, operation: str, act: Callable[[], object]) -> None:
    """Act when a request of this kind goes out for the second time."""
    requests = 0

    def count() -> None:
        nonlocal requests
        requests += 1
        if requests == 2:
            act()

    before(store._bucket.client, operation, count, times=9)


def test_lost_answer_that_boto3_retries_into_a_412_is_our_own_success(store: S3Snapshots, folder: Path) -> None:
    only_pointer(store, lambda: lose_answers(store._bucket.client, "PutObject"))
    store.publish(FIRST, folder, None)
    assert store.current() == FIRST
    store.publish(SECOND, folder, FIRST)
    assert store.snapshots() == [FIRST, SECOND]


def test_lost_answer_is_read_back(settings: BucketSettings, folder: Path) -> None:
    store = once(settings)
    only_pointer(store, lambda: lose_answers(store._bucket.client, "PutObject"))
    store.publish(FIRST, folder, None)
    assert store.current() == FIRST


def test_pointer_that_may_still_change_keeps_the_uploaded_files(settings: BucketSettings, folder: Path) -> None:
    store = once(settings)
    only_pointer(store, lambda: lose_requests(store._bucket.client, "PutObject", times=9))
    with pytest.raises(Unavailable) as caught:
        store.publish(FIRST, folder, None)
    assert caught.value.code == "store_unreachable"
    assert store.current() is None
    assert store.snapshots() == [FIRST]


def test_pointer_that_can_no_longer_be_read_keeps_the_uploaded_files(settings: BucketSettings, folder: Path) -> None:
    store = once(settings)
    client = store._bucket.client

    def lose_all() -> None:
        before(client, "PutObject", lambda: lose_requests(client, "GetObject", times=9))
        lose_answers(client, "PutObject")

    only_pointer(store, lose_all)
    with pytest.raises(Unavailable):
        store.publish(FIRST, folder, None)
    assert once(settings).current() == FIRST
    assert once(settings).snapshots() == [FIRST]


def test_objects_that_cannot_be_deleted_are_counted(store: S3Snapshots, folder: Path) -> None:
    store.publish(FIRST, folder, None)
    store.publish(SECOND, folder, FIRST)
    refusal = "<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code></Error></DeleteResult>"
    answer_instead(store._bucket.client, "DeleteObjects", 200, refusal)
    with pytest.raises(Unavailable) as caught:
        store.delete(FIRST)
    assert (caught.value.message, caught.value.detail) == ("1 objects could not be deleted", "AccessDenied")
    store.delete(FIRST)
    assert store.snapshots() == [SECOND]


def test_conflict_under_way_is_tried_again(store: S3Snapshots, folder: Path) -> None:
    only_pointer(store, lambda: answer_instead(store._bucket.client, "PutObject", 409, CONFLICT, times=2))
    store.publish(FIRST, folder, None)
    assert store.current() == FIRST


def test_conflict_that_does_not_end_is_given_up_and_leaves_nothing(store: S3Snapshots, folder: Path) -> None:
    only_pointer(store, lambda: answer_instead(store._bucket.client, "PutObject", 409, CONFLICT, times=99))
    with pytest.raises(Unavailable):
        store.publish(FIRST, folder, None)
    assert names(store) == []


def test_refused_pointer_leaves_nothing(store: S3Snapshots, folder: Path) -> None:
    only_pointer(store, lambda: answer_instead(store._bucket.client, "PutObject", 403, DENIED))
    with pytest.raises(Unavailable) as caught:
        store.publish(FIRST, folder, None)
    assert caught.value.detail == "AccessDenied"
    assert names(store) == []


def test_other_refresh_between_our_look_and_our_put_wins(
    store: S3Snapshots, settings: BucketSettings, folder: Path
) -> None:
    other = once(settings)
    client = store._bucket.client
    only_pointer(store, lambda: before(client, "PutObject", lambda: other.publish(SECOND, folder, None)))
    with pytest.raises(Refused) as caught:
        store.publish(FIRST, folder, None)
    assert caught.value.code == "refresh_conflict"
    assert store.current() == SECOND
    assert store.snapshots() == [SECOND]
    assert not [name for name in names(store) if FIRST in name]


def test_upload_that_fails_leaves_nothing(settings: BucketSettings, folder: Path) -> None:
    store = once(settings)
    before(store._bucket.client, "PutObject", lambda: None)
    answer_instead(store._bucket.client, "PutObject", 403, DENIED, times=9)
    with pytest.raises(Unavailable):
        store.publish(FIRST, folder, None)
    assert names(store) == []


def test_file_that_did_not_arrive_is_noticed_before_the_snapshot_is_current(
    store: S3Snapshots, settings: BucketSettings, folder: Path, local_aws: LocalAws
) -> None:
    key = f"{settings.prefix}snapshots/{FIRST}/0000/text.parquet"
    at_second(store, "ListObjectsV2", lambda: local_aws.s3().delete_object(Bucket=settings.bucket, Key=key))
    with pytest.raises(Unavailable) as caught:
        store.publish(FIRST, folder, None)
    assert caught.value.message == "of 1 files of the snapshot 0 arrived whole"
    assert names(store) == []


def entry_of(folder: Path) -> FileEntry:
    data = (folder / TEXT).read_bytes()
    return FileEntry(TEXT, len(data), 10, sha256(data).hexdigest())


def requests_of(store: S3Snapshots) -> list[str]:
    """From now on, the kinds of its requests."""
    sent: list[str] = []
    store._bucket.client.meta.events.register(
        "before-send.s3", lambda event_name, **_: sent.append(event_name.rpartition(".")[2])
    )
    return sent


def test_files_are_compared_with_a_manifest_that_was_read_by_one_request(
    store: S3Snapshots, settings: BucketSettings, folder: Path
) -> None:
    store.publish(FIRST, folder, None)
    other = S3Snapshots(settings)
    sent = requests_of(other)
    other.read(FIRST, "manifest.json")
    assert other.altered(FIRST, [entry_of(folder)]) == []
    assert sent == ["GetObject", "ListObjectsV2"]


def test_objects_copied_whole_with_other_etags_are_told_by_the_checksum_the_store_keeps(
    settings: BucketSettings, folder: Path, local_aws: LocalAws
) -> None:
    content = (folder / TEXT).read_bytes() + bytes(6 * 2**20)
    (folder / TEXT).write_bytes(content)
    S3Snapshots(settings).publish(FIRST, folder, None)
    # Published in parts, put back in one: the same bytes under another ETag.
    digest = b64encode(sha256(content).digest()).decode()
    client, key = local_aws.s3(), f"{settings.prefix}snapshots/{FIRST}/{TEXT}"
    client.put_object(Bucket=settings.bucket, Key=key, Body=content, ChecksumSHA256=digest)
    assert S3Snapshots(settings).altered(FIRST, [entry_of(folder)]) == []
    # Nothing vouches for what came without the checksum of its whole.
    client.put_object(Bucket=settings.bucket, Key=key, Body=content, ChecksumAlgorithm="CRC32")
    assert S3Snapshots(settings).altered(FIRST, [entry_of(folder)]) == [TEXT]


def test_a_snapshot_without_a_seal_is_told_by_checksums_and_sizes(
    settings: BucketSettings, folder: Path, local_aws: LocalAws
) -> None:
    S3Snapshots(settings).publish(FIRST, folder, None)
    client, key = local_aws.s3(), f"{settings.prefix}snapshots/{FIRST}/"
    client.put_object(Bucket=settings.bucket, Key=f"{key}manifest.json", Body=b"{}")
    entry = entry_of(folder)
    assert S3Snapshots(settings).altered(FIRST, [entry]) == []
    assert S3Snapshots(settings).altered(FIRST, [replace(entry, sha256="00" * 32)]) == [TEXT]
    client.put_object(Bucket=settings.bucket, Key=key + TEXT, Body=(folder / TEXT).read_bytes())
    assert S3Snapshots(settings).altered(FIRST, [entry]) == []


def test_objects_were_asked_for_one_by_one_after_their_call_had_ended(
    settings: BucketSettings, folder: Path, local_aws: LocalAws
) -> None:
    S3Snapshots(settings).publish(FIRST, folder, None)
    # Without its seal every object is asked for.
    key = f"{settings.prefix}snapshots/{FIRST}/manifest.json"
    local_aws.s3().put_object(Bucket=settings.bucket, Key=key, Body=b"{}")
    store, passed = S3Snapshots(settings), [0.0]
    store.read(FIRST, "manifest.json")
    sent = requests_of(store)
    events = store._bucket.client.meta.events
    events.register("after-call.s3.ListObjectsV2", lambda **_: passed.append(5.0))
    with ending_in(5, lambda: passed[-1]), pytest.raises(Unavailable) as caught:
        store.altered(FIRST, [entry_of(folder)])
    assert (caught.value.code, sent) == ("too_slow", ["ListObjectsV2"])


def test_large_files_go_up_in_parts_and_come_back_whole(store: S3Snapshots, folder: Path) -> None:
    content = bytes(range(256)) * 60_000
    (folder / "0000" / "folded.parquet").write_bytes(content)
    store.publish(FIRST, folder, None)
    assert store.read(FIRST, "0000/folded.parquet") == content


def test_files_of_dead_publishes_are_swept_after_the_grace_time(
    settings: BucketSettings, local_aws: LocalAws, folder: Path
) -> None:
    half = f"{settings.prefix}snapshots/{SECOND}/0000/text.parquet"
    client = local_aws.s3()
    client.put_object(Bucket=settings.bucket, Key=half, Body=b"half")
    changed = client.head_object(Bucket=settings.bucket, Key=half)["LastModified"].timestamp()
    young = S3Snapshots(settings, grace_seconds=6 * HOUR, clock=lambda: changed + 6 * HOUR)
    young.publish(FIRST, folder, None)
    assert SECOND in str(names(young))
    late = S3Snapshots(settings, grace_seconds=6 * HOUR, clock=lambda: changed + 6 * HOUR + 60)
    late.publish("20261202T000000.000000Z-ffffffff", folder, FIRST)
    assert SECOND not in str(names(late))


def locked(store: S3Snapshots) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"allow_persistent_secrets": False, "home_directory": "/nonexistent"})
    store.prepare(connection)
    connection.execute("SET allowed_directories = ?", [[store.location]])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def test_credentials_are_replaced_after_the_lock(
    store: S3Snapshots, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.publish(FIRST, folder, None)
    good = store._bucket.aws.credentials()
    question = f"SELECT count(*) FROM read_parquet('{store.prefix(FIRST)}0000/text.parquet')"
    with locked(store) as connection:
        monkeypatch.setattr(store._bucket.aws, "credentials", lambda: ReadOnlyCredentials("AKIDEXPIRED", "x", None))
        store.renew(connection)
        with pytest.raises(duckdb.HTTPException):
            connection.cursor().execute(question)
        monkeypatch.setattr(store._bucket.aws, "credentials", lambda: good)
        store.renew(connection)
        assert connection.cursor().execute(question).fetchall() == [(10,)]


def test_unchanged_credentials_cost_no_statement(store: S3Snapshots) -> None:
    connection = locked(store)
    connection.close()
    store.renew(connection)


def test_failed_renewal_does_not_tell_the_keys(store: S3Snapshots, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = locked(store)
    connection.close()
    credentials = ReadOnlyCredentials("AKIDOTHER", "another secret", "a token")
    monkeypatch.setattr(store._bucket.aws, "credentials", lambda: credentials)
    with pytest.raises(Unavailable) as caught:
        store.renew(connection)
    assert caught.value.__cause__ is None
    assert not [word for word in credentials if str(word) in repr(caught.value.__dict__)]


def test_reader_waits_five_seconds_and_tries_twice(store: S3Snapshots) -> None:
    with locked(store) as connection:
        wanted = {
            "http_timeout": 5,
            "http_retries": 1,
            "enable_server_cert_verification": True,
            "lock_configuration": True,
        }
        found = {name: connection.sql(f"SELECT current_setting('{name}')").fetchall()[0][0] for name in wanted}
        assert found == wanted
        with pytest.raises(duckdb.Error):
            connection.execute("SET http_timeout = 60")
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT * FROM read_text('/etc/hostname')")


def test_keys_are_never_shown_by_the_reader(store: S3Snapshots, local_aws: LocalAws) -> None:
    with locked(store) as connection:
        shown = connection.sql("SELECT secret_string FROM duckdb_secrets()").fetchall()
        assert len(shown) == 1
        assert local_aws.secret not in str(shown)


def test_missing_extension_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_snapshots, "find_spec", lambda _: None)
    with duckdb.connect() as connection, pytest.raises(Unavailable) as caught:
        s3_snapshots.load_httpfs(connection)
    assert f"duckdb {duckdb.__version__} needs duckdb-extension-httpfs" in caught.value.message


@pytest.mark.usefixtures("local_aws")
def test_server_that_does_not_answer_is_a_clear_error() -> None:
    endpoint = f"http://127.0.0.1:{free_ports(1)[0]}"
    store = S3Snapshots(BucketSettings("bucket", aws=AwsSettings(endpoint_url=endpoint, attempts=1)))
    with pytest.raises(Unavailable) as caught:
        store.current()
    assert caught.value.code == "store_unreachable"
    assert caught.value.detail == "EndpointConnectionError"


def test_missing_bucket_and_wrong_keys_are_clear_errors(
    local_aws: LocalAws, settings: BucketSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = S3Snapshots(BucketSettings("no-such-bucket", aws=AwsSettings(endpoint_url=local_aws.s3_endpoint)))
    with pytest.raises(Unavailable) as no_bucket:
        missing.current()
    assert no_bucket.value.detail == "NoSuchBucket"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(Unavailable) as wrong_keys:
        S3Snapshots(settings).current()
    assert wrong_keys.value.detail == "SignatureDoesNotMatch"


def test_no_credentials_at_all_is_a_clear_error(settings: BucketSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    store = S3Snapshots(settings)
    with pytest.raises(Unavailable):
        store.current()
    with duckdb.connect() as connection, pytest.raises(Unavailable):
        store.prepare(connection)


def test_file_that_cannot_be_read_is_told_from_one_that_is_not_there(store: S3Snapshots, folder: Path) -> None:
    store.publish(FIRST, folder, None)
    for look in (store.read, store.sha256):
        answer_instead(store._bucket.client, "GetObject", 403, DENIED)
        with pytest.raises(Unavailable):
            look(FIRST, "manifest.json")
        with pytest.raises(NotFound):
            look(FIRST, "none.json")


def test_roll_back_with_an_unreadable_pointer_changes_nothing(store: S3Snapshots, folder: Path) -> None:
    store.publish(FIRST, folder, None)
    store.publish(SECOND, folder, FIRST)
    client = store._bucket.client
    # The manifest is read first; a fault set during a request is in force from the next one on.
    before(client, "GetObject", lambda: answer_instead(client, "GetObject", 403, DENIED))
    with pytest.raises(Unavailable):
        store.point(FIRST, SECOND)
    assert store.current() == SECOND


@pytest.mark.parametrize(
    ("bucket", "prefix"),
    [
        ("", ""),
        ("a/b", ""),
        ("Upper", ""),
        ("bucket", "no-slash"),
        ("bucket", "/"),
        ("bucket", "../"),
        ("bucket", "a//"),
    ],
)
def test_bucket_and_prefix_are_plain_names(bucket: str, prefix: str) -> None:
    with pytest.raises(ValueError, match="bucket"):
        BucketSettings(bucket, prefix)


def test_unknown_encryption_is_refused() -> None:
    with pytest.raises(ValueError, match="encryption"):
        BucketSettings("bucket", encryption="rot13")
    kms = BucketSettings("bucket", encryption="aws:kms", kms_key="alias/hayfork", aws=AwsSettings("us-east-1"))
    assert S3Snapshots(kms)._bucket.encryption == {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "alias/hayfork"}


def test_modules_load_no_boto3_and_new_stores_open_no_socket_and_read_no_credentials(tmp_path: Path) -> None:
    program = """
import os, sys
from infra import dynamodb, s3, s3_exports, s3_snapshots

assert "boto3" not in sys.modules
seen = []
sys.addaudithook(lambda event, given: seen.append((event, given[:1])) if event.startswith(("socket", "open")) else None)
settings = s3.BucketSettings("bucket")
s3_snapshots.S3Snapshots(settings), s3_exports.S3Exports(settings, "https://x"), dynamodb.DynamoSeen("table")
connected = [event for event in seen if event[0].startswith("socket.connect")]
opened = [event for event in seen if os.environ["HOME"] in str(event[1])]
assert not connected + opened, seen
"""
    own = {"HOME": str(tmp_path), "PATH": ""}
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60, env=own).returncode == 0


def test_an_upload_stops_when_there_is_no_more_time_and_leaves_nothing(store: S3Snapshots, folder: Path) -> None:
    def refuse() -> None:
        raise Unavailable("no_time", "time is over")

    with watched(refuse), pytest.raises(Unavailable, match="time is over"):
        store.publish(FIRST, folder, None)
    assert names(store) == []
