"""Sources in S3: what a location names, when it has changed, and what its reader is given."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from engine.errors import BadInput, Unavailable
from engine.model import SourceMessage, SourceReport
from engine.watch import watched
from infra.aws import AwsSettings
from infra.s3_source import S3Place, S3Source, s3_place
from tests.local_aws import LocalAws

pytestmark = pytest.mark.aws


class Listing:
    """A source that yields one message for each file it is given, named by its path and content."""

    def __init__(self, location: str, seen: list[str]) -> None:
        self.name = "listing"
        self._location = location
        self._seen = seen

    def digest(self) -> str:
        raise AssertionError("the listing decides")

    def messages(self, report: SourceReport) -> Iterator[SourceMessage]:
        del report
        self._seen.append(self._location)
        path = Path(self._location)
        base, pattern = (path.parent, path.name) if "*" in path.name or path.is_file() else (path, "**/*")
        for number, file in enumerate(sorted(p for p in base.glob(pattern) if p.is_file())):
            body = f"{file.relative_to(base)}={file.read_text()}"
            yield SourceMessage("c", "c", str(number), 0, "a", "a", body)


@pytest.fixture
def bucket(local_aws: LocalAws) -> str:
    name = f"sources-{uuid4().hex[:12]}"
    local_aws.s3().create_bucket(Bucket=name)
    return name


@pytest.fixture
def put(local_aws: LocalAws, bucket: str) -> Callable[[str, str], None]:
    return lambda key, text: local_aws.s3().put_object(Bucket=bucket, Key=key, Body=text.encode()) and None


def source(aws: LocalAws, location: str, temp: Path, seen: list[str] | None = None, identity: str = "") -> S3Source:
    given = seen if seen is not None else []
    return S3Source(
        s3_place(location),
        lambda local: Listing(local, given),
        name="messages",
        identity=identity,
        temp_folder=temp,
        aws=AwsSettings(endpoint_url=aws.s3_endpoint),
    )


def bodies(read: S3Source) -> list[str]:
    return [message.body for message in read.messages(SourceReport())]


def left(temp: Path) -> list[Path]:
    """What is still there of files that were fetched."""
    return list(temp.rglob("source-*"))


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("s3://some-bucket/messages/", S3Place("some-bucket", "messages/")),
        ("s3://some-bucket/a/b.zip", S3Place("some-bucket", "a/b.zip")),
        ("s3://some-bucket/a/2016-*/x?.csv", S3Place("some-bucket", "a/", "2016-*/x?.csv")),
        ("s3://some-bucket/", S3Place("some-bucket", "")),
        ("s3://some-bucket/*.csv", S3Place("some-bucket", "", "*.csv")),
    ],
)
def test_a_location_names_an_object_a_prefix_or_a_glob(location: str, place: S3Place) -> None:
    assert s3_place(location) == place


@pytest.mark.parametrize("location", ["s3://", "s3://b/x", "s3://some-bucket", "s3://Some_Bucket/x", "http://a/b"])
def test_another_location_is_refused(location: str) -> None:
    with pytest.raises(BadInput, match="is no place in S3"):
        s3_place(location)


def test_a_folder_is_brought_whole_and_is_gone_afterwards(
    local_aws: LocalAws, bucket: str, put: Callable[[str, str], None], tmp_path: Path
) -> None:
    put("messages/a/1.json", "one")
    put("messages/b.json", "two")
    put("messages/empty/", "")
    put("messages-of-others/c.json", "three")
    seen: list[str] = []
    assert bodies(source(local_aws, f"s3://{bucket}/messages/", tmp_path, seen)) == ["a/1.json=one", "b.json=two"]
    assert len(seen) == 1
    assert left(tmp_path) == []


def test_a_single_file_and_a_glob_are_given_as_such(
    local_aws: LocalAws, bucket: str, put: Callable[[str, str], None], tmp_path: Path
) -> None:
    put("messages/export.zip", "zip")
    assert bodies(source(local_aws, f"s3://{bucket}/messages/", tmp_path)) == ["export.zip=zip"]
    assert bodies(source(local_aws, f"s3://{bucket}/messages/export.zip", tmp_path)) == ["export.zip=zip"]
    put("messages/export.zip.bak", "no")
    assert bodies(source(local_aws, f"s3://{bucket}/messages/export.zip", tmp_path)) == ["export.zip=zip"]
    put("messages/a.csv", "a")
    assert bodies(source(local_aws, f"s3://{bucket}/messages/*.csv", tmp_path)) == ["a.csv=a"]


def test_the_digest_changes_with_names_contents_and_configuration_only(
    local_aws: LocalAws, bucket: str, put: Callable[[str, str], None], tmp_path: Path
) -> None:
    location = f"s3://{bucket}/messages/"
    put("messages/a", "one")
    first = source(local_aws, location, tmp_path).digest()
    put("messages/a", "one")
    assert source(local_aws, location, tmp_path).digest() == first
    assert source(local_aws, location, tmp_path, identity="other").digest() != first
    put("messages/a", "two")
    second = source(local_aws, location, tmp_path).digest()
    put("messages/b", "")
    assert len({first, second, source(local_aws, location, tmp_path).digest()}) == 3


def test_what_changes_between_digest_and_reading_is_not_read(
    local_aws: LocalAws, bucket: str, put: Callable[[str, str], None], tmp_path: Path
) -> None:
    put("messages/a", "one")
    read = source(local_aws, f"s3://{bucket}/messages/", tmp_path)
    read.digest()
    put("messages/a", "two")
    with pytest.raises(Unavailable):
        bodies(read)
    assert left(tmp_path) == []
    assert bodies(read) == ["a=two"], "the next refresh lists anew"


@pytest.mark.parametrize("key", ["messages/../../outside", "messages//outside"])
def test_a_key_never_leads_out_of_the_folder(
    local_aws: LocalAws, bucket: str, put: Callable[[str, str], None], tmp_path: Path, key: str
) -> None:
    put("messages/a", "one")
    # A server may refuse or tidy such a key itself; then it never comes to us.
    with suppress(ClientError):
        put(key, "two")
    with suppress(BadInput):
        assert all(b.endswith(("one", "two")) for b in bodies(source(local_aws, f"s3://{bucket}/", tmp_path / "in")))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_empty_place_says_so(local_aws: LocalAws, bucket: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing lies at the location of 'messages'"):
        source(local_aws, f"s3://{bucket}/messages/", tmp_path).digest()


def test_files_that_do_not_fit_are_not_begun(
    local_aws: LocalAws,
    bucket: str,
    put: Callable[[str, str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put("messages/a", "x" * 3_000_000)
    monkeypatch.setattr("infra.s3_source._SPARE_BYTES", 2**62)
    with pytest.raises(BadInput, match="take 2 MB, and 0 MB are free"):
        bodies(source(local_aws, f"s3://{bucket}/messages/", tmp_path))


def test_a_download_stops_when_there_is_no_more_time(
    local_aws: LocalAws, bucket: str, put: Callable[[str, str], None], tmp_path: Path
) -> None:
    def refuse() -> None:
        raise Unavailable("no_time", "time is over")

    put("messages/a", "one")
    with watched(refuse), pytest.raises(Unavailable, match="time is over"):
        bodies(source(local_aws, f"s3://{bucket}/messages/", tmp_path))
    assert left(tmp_path) == []
