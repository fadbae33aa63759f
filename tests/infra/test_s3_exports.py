"""What is particular to exports in S3: links, presigned redirects, lost answers, encryption."""

from collections.abc import Callable
from dataclasses import replace
from http.client import HTTPConnection
from urllib.parse import parse_qs, urlsplit

import pytest

from engine.errors import Unavailable
from engine.ports import Export, ExportSink
from infra.aws import AwsSettings
from infra.s3 import BucketSettings
from infra.s3_exports import S3Exports
from tests.contracts.benches import download, new_bucket
from tests.local_aws import LocalAws
from tests.lost_answers import answer_after, answer_instead, lose_answers, lose_requests

pytestmark = pytest.mark.aws

EXPORT = Export("k3Jx0qk2TzW9bN7cVfY1LgAAAAAAAAAAAAAAAAAAAAA", "me", "csv", "done", 1_796_126_400_000_000, 2**52)
LARGE = 12 * 2**20


@pytest.fixture
def settings(local_aws: LocalAws) -> BucketSettings:
    return new_bucket(local_aws)


@pytest.fixture
def store(settings: BucketSettings) -> S3Exports:
    return S3Exports(settings, "https://hayfork.example/", redirect_seconds=60)


def once(settings: BucketSettings) -> S3Exports:
    aws = AwsSettings(endpoint_url=settings.aws.endpoint_url, attempts=1)
    return S3Exports(
        BucketSettings(settings.bucket, part_bytes=settings.part_bytes, aws=aws), "https://hayfork.example"
    )


def write(store: S3Exports, data: bytes) -> None:
    write_through(store.sink(EXPORT), data)


def write_through(sink: ExportSink, data: bytes) -> None:
    sink.write(data)
    sink.commit()


def left_over(store: S3Exports) -> list[object]:
    client = store._bucket.client
    bucket = store._bucket.settings.bucket
    uploads = client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    return [*store._bucket.list(""), *uploads]


def test_link_is_the_endpoint_and_the_id(store: S3Exports) -> None:
    assert store.link(EXPORT) == f"https://hayfork.example/exports/{EXPORT.export_id}"


def test_redirect_is_signed_now_for_a_minute_and_downloads_under_a_name(store: S3Exports) -> None:
    write(store, b"a,b\n")
    url = store.presigned(EXPORT)
    query = parse_qs(urlsplit(url).query)
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert query["X-Amz-Expires"] == ["60"]
    assert EXPORT.export_id not in url
    found = download(url)
    assert (found.status, found.body) == (200, b"a,b\n")
    assert found.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert found.headers["Content-Disposition"] == 'attachment; filename="hayfork.csv"'


def test_a_head_request_is_redirected_by_a_url_of_its_own(store: S3Exports) -> None:
    write(store, b"a,b\n")
    url = urlsplit(store.presigned(EXPORT, "HEAD"))
    connection = HTTPConnection(url.netloc, timeout=30)
    connection.request("HEAD", f"{url.path}?{url.query}")
    found = connection.getresponse()
    assert (found.status, found.headers["Content-Length"]) == (200, "4")
    connection.close()
    assert download(store.presigned(EXPORT, "HEAD")).status == 403


def test_a_link_without_an_address_leads_to_the_file_itself(settings: BucketSettings) -> None:
    store = S3Exports(settings, "")
    write(store, b"a,b\n")
    link = store.link(replace(EXPORT, expires_at=EXPORT.created_at + 3_600_000_000))
    assert parse_qs(urlsplit(link).query)["X-Amz-Expires"] == ["3600"]
    assert download(link).body == b"a,b\n"


@pytest.mark.parametrize(("size", "operation"), [(4, "PutObject"), (LARGE, "CompleteMultipartUpload")])
def test_an_abort_leaves_what_another_writer_put_there(settings: BucketSettings, size: int, operation: str) -> None:
    first, second = once(settings), once(settings)
    sink = first.sink(EXPORT)
    sink.write(b"x" * size)
    write(second, b"whole")
    lose_requests(first._bucket.client, operation)
    with pytest.raises(Unavailable):
        sink.commit()
    sink.abort()
    assert download(second.presigned(EXPORT)).body == b"whole"


def test_a_new_export_looks_at_a_few_records_however_many_there_are(store: S3Exports) -> None:
    left = {f"{n:043d}" for n in range(12)}
    for export_id in left:
        store.put(replace(EXPORT, export_id=export_id, expires_at=1))
    sent: list[str] = []
    store._bucket.client.meta.events.register("before-send.s3", lambda request, **_: sent.append(request.url))
    looks = 0
    while left:
        looks += 1
        sent.clear()
        found = store.expired(EXPORT.created_at)
        assert 1 <= len(found) <= 4
        assert len(sent) <= 2 + 4
        for export_id in found:
            store.revoke(export_id)
        left -= set(found)
    assert looks <= 12


def test_changed_redirect_gives_nothing(store: S3Exports) -> None:
    write(store, b"a,b\n")
    url = store.presigned(EXPORT).replace("X-Amz-Expires=60", "X-Amz-Expires=6000")
    assert download(url).status == 403


@pytest.mark.parametrize("size", [4, LARGE])
def test_files_are_encrypted_at_rest(store: S3Exports, size: int) -> None:
    write(store, b"x" * size)
    (entry,) = store._bucket.list("")
    head = store._bucket.client.head_object(**store._bucket.place(entry.name))
    assert head["ServerSideEncryption"] == "AES256"


@pytest.mark.parametrize(
    ("size", "operation"), [(4, "PutObject"), (LARGE, "UploadPart"), (LARGE, "CompleteMultipartUpload")]
)
def test_lost_answer_while_writing_changes_nothing(store: S3Exports, size: int, operation: str) -> None:
    lose_answers(store._bucket.client, operation)
    write(store, b"x" * size)
    assert download(store.presigned(EXPORT)).body == b"x" * size


def test_upload_that_a_second_try_no_longer_finds_is_done_if_its_file_is_whole(store: S3Exports) -> None:
    gone = "<Error><Code>NoSuchUpload</Code></Error>"
    answer_after(store._bucket.client, "CompleteMultipartUpload", 404, gone)
    write(store, b"x" * LARGE)
    assert len(download(store.presigned(EXPORT)).body) == LARGE


def test_upload_that_someone_else_ended_is_a_clear_error(store: S3Exports) -> None:
    gone = "<Error><Code>NoSuchUpload</Code></Error>"
    answer_instead(store._bucket.client, "CompleteMultipartUpload", 404, gone)
    sink = store.sink(EXPORT)
    with pytest.raises(Unavailable) as caught:
        write_through(sink, b"x" * LARGE)
    assert caught.value.detail == "404"
    sink.abort()
    assert left_over(store) == []


@pytest.mark.parametrize("lose", [lose_answers, lose_requests])
@pytest.mark.parametrize(
    ("size", "operation"), [(4, "PutObject"), (LARGE, "CompleteMultipartUpload"), (LARGE, "UploadPart")]
)
def test_abort_after_a_failed_write_or_commit_leaves_nothing(
    settings: BucketSettings, size: int, operation: str, lose: Callable[[object, str], None]
) -> None:
    store = once(settings)
    lose(store._bucket.client, operation)
    sink = store.sink(EXPORT)
    with pytest.raises(Unavailable):
        write_through(sink, b"x" * size)
    sink.abort()
    assert left_over(store) == []


def test_unknown_format_is_plain_bytes(store: S3Exports) -> None:
    odd = Export("id", "me", "xyz", "done", 0, 1)
    sink = store.sink(odd)
    sink.commit()
    (entry,) = store._bucket.list("")
    head = store._bucket.client.head_object(**store._bucket.place(entry.name))
    assert (entry.name.rsplit(".")[-1], head["ContentType"]) == ("xyz", "application/octet-stream")
