"""One bucket, below one prefix: objects read, listed, written with checksums, and removed.

Decides how an object gets in: SHA-256 sent with every byte, in one request or in parts, and gone without a
trace when it is given up: its own trace, never what another writer put under the same name. Names come from
`infra.layout`. Must never know what an object means.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError, Unavailable
from infra.aws import Aws, AwsSettings, error_code, unreachable

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

__all__ = ["Bucket", "BucketSettings", "Listed", "Stored", "Upload"]

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"([A-Za-z0-9_-][A-Za-z0-9_.-]*/)*")
_WRITER = "writer"
"""What an object says of the upload that made it, so that only this one takes it away again."""

_MISSING = {"NoSuchKey", "404"}


@dataclass(frozen=True, slots=True)
class BucketSettings:
    """Which bucket, where in it, and how objects are written.

    `prefix` is empty or ends in `/`. `encryption` is `AES256`, `aws:kms` (with `kms_key` or the account's
    own) or empty for the bucket's default. What is longer than `part_bytes`, at least 5 MiB, goes in parts.
    """

    bucket: str
    prefix: str = ""
    encryption: str = "AES256"
    kms_key: str = ""
    part_bytes: int = 16 * 2**20
    aws: AwsSettings = field(default_factory=AwsSettings)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.bucket) or not _PREFIX.fullmatch(self.prefix):
            raise ValueError("a bucket's name and a prefix that ends in / are needed")
        if self.encryption not in {"", "AES256", "aws:kms"}:
            raise ValueError("encryption is AES256, aws:kms or empty")


@dataclass(frozen=True, slots=True)
class Listed:
    """An object of a listing: its name below the prefix, size in bytes, ETag, and age in seconds since 1970."""

    name: str
    size: int
    etag: str
    changed_at: float


@dataclass(frozen=True, slots=True)
class Stored:
    """An object that was read: its bytes, ETag, and what was noted on it when it was written."""

    data: bytes
    etag: str
    notes: Mapping[str, str]


class Bucket:
    """A bucket's objects by their names below the prefix. Safe to use from several threads."""

    def __init__(self, settings: BucketSettings) -> None:
        self.settings = settings
        self.aws = Aws(settings.aws)

    @cached_property
    def client(self) -> "S3Client":
        """Made by the first call, not before."""
        return self.aws.s3()

    @property
    def url(self) -> str:
        """`s3://<bucket>/<prefix>`."""
        return f"s3://{self.settings.bucket}/{self.settings.prefix}"

    def place(self, name: str) -> dict[str, Any]:
        """Bucket and key of a name, as calls take them."""
        return {"Bucket": self.settings.bucket, "Key": self.settings.prefix + name}

    def get(self, name: str) -> Stored | None:
        """An object, `None` when there is none."""
        tries = 0
        while True:
            try:
                found = self.client.get_object(**self.place(name))
            except self.aws.failures as error:
                if error_code(error) in _MISSING:
                    return None
                raise unreachable(error) from error
            tries += 1
            try:
                return Stored(found["Body"].read(), found["ETag"], found["Metadata"])
            except self.aws.failures as error:
                # boto3 tries again until an answer begins, not when it ends early.
                if tries >= self.settings.aws.attempts:
                    raise unreachable(error) from error

    def sha256(self, name: str) -> str | None:
        """SHA-256 of an object as it is stored, in hex, read in pieces; `None` when there is none."""
        digest = sha256()
        try:
            for chunk in self.client.get_object(**self.place(name))["Body"].iter_chunks(2**20):
                digest.update(chunk)
        except self.aws.failures as error:
            if error_code(error) in _MISSING:
                return None
            raise unreachable(error) from error
        return digest.hexdigest()

    def kept_sha256(self, name: str) -> str | None:
        """SHA-256 in hex that the store keeps of an object, without reading it; `None` where it keeps none.

        Of an object written in parts it keeps none of the whole.
        """
        with self.aws.reachable():
            kept = self.client.head_object(**self.place(name), ChecksumMode="ENABLED").get("ChecksumSHA256", "")
        return b64decode(kept).hex() if kept and "-" not in kept else None

    def put(self, name: str, data: bytes, conditions: Mapping[str, str] | None = None) -> None:
        """Write an object in one request. What boto3 raises goes through: only the caller can judge it."""
        self.client.put_object(
            **self.place(name),
            Body=data,
            ChecksumSHA256=_checksum(data),
            **self.encryption,
            **(conditions or {}),  # type: ignore[arg-type]  # a mapping of options, of which all are texts
        )

    def list(self, name: str) -> Iterator[Listed]:
        """All objects whose names begin with `name`, in no promised order."""
        place: dict[str, Any] = {"Bucket": self.settings.bucket, "Prefix": self.settings.prefix + name}
        with self.aws.reachable():
            for page in self.client.get_paginator("list_objects_v2").paginate(**place):
                yield from self._listed(page)

    def some(self, name: str, after: str, most: int) -> Sequence[Listed]:
        """At most `most` objects whose names begin with `name` and come after `name + after`; one request."""
        begin = self.settings.prefix + name
        with self.aws.reachable():
            page = self.client.list_objects_v2(
                Bucket=self.settings.bucket, Prefix=begin, StartAfter=begin + after, MaxKeys=most
            )
            return tuple(self._listed(page))

    def _listed(self, page: Any) -> Iterator[Listed]:
        for entry in page.get("Contents", []):
            changed_at = entry["LastModified"].timestamp()
            key = entry["Key"][len(self.settings.prefix) :]
            yield Listed(key, entry["Size"], entry["ETag"], changed_at)

    def remove(self, names: Iterable[str]) -> None:
        """Delete objects, a thousand at a time; those that are not there do not matter."""
        waiting = [{"Key": self.settings.prefix + name} for name in names]
        with self.aws.reachable():
            for start in range(0, len(waiting), 1_000):
                gone = self.client.delete_objects(
                    Bucket=self.settings.bucket,
                    Delete={"Objects": waiting[start : start + 1_000], "Quiet": True},  # type: ignore[typeddict-item]  # keys only
                )
                if failed := gone.get("Errors"):
                    raise Unavailable(
                        "store_unreachable",
                        f"{len(failed)} objects could not be deleted",
                        next_step="call again",
                        detail=failed[0].get("Code", ""),
                    )

    def upload(self, name: str, **headers: str | Mapping[str, str]) -> "Upload":
        """A new object, to be written piece by piece; `headers` are options such as `ContentType` and `Metadata`."""
        return Upload(self, name, headers)

    @cached_property
    def encryption(self) -> dict[str, Any]:
        """The options of encryption for every write."""
        chosen = self.settings.encryption
        key = {"SSEKMSKeyId": self.settings.kms_key} if self.settings.kms_key else {}
        return {"ServerSideEncryption": chosen, **key} if chosen else {}


class Upload:
    """An object being written. It exists once `commit` returns; after `abort` nothing of it is left."""

    def __init__(self, bucket: Bucket, name: str, headers: dict[str, Any]) -> None:
        self._bucket = bucket
        self._place = bucket.place(name)
        self._writer = token_hex(8)
        self._headers = {
            **headers,
            **bucket.encryption,
            "Metadata": {**headers.get("Metadata", {}), _WRITER: self._writer},
        }
        self._waiting = bytearray()
        self._size = 0
        self._upload_id = ""
        self._parts: list[dict[str, Any]] = []
        self._open = True
        self._asked = False

    def write(self, data: bytes) -> None:
        """Append; what fills a part is sent."""
        self._waiting += data
        self._size += len(data)
        size = self._bucket.settings.part_bytes
        while len(self._waiting) > size:
            self._send(bytes(self._waiting[:size]))
            del self._waiting[:size]

    def commit(self) -> None:
        """Make the object readable, whole."""
        self._asked = True
        client = self._bucket.client
        last = bytes(self._waiting)
        if self._upload_id:
            self._send(last)
            self._complete()
        else:
            with self._bucket.aws.reachable():
                client.put_object(**self._place, **self._headers, Body=last, ChecksumSHA256=_checksum(last))
        self._open = False
        self._waiting.clear()

    def abort(self) -> None:
        """Throw away what was sent; nothing happens after `commit`. A dead process leaves it to lifecycle."""
        failures = self._bucket.aws.failures
        if self._open and self._upload_id:
            with suppress(*failures, EngineError):
                self._bucket.client.abort_multipart_upload(**self._place, UploadId=self._upload_id)
        if self._open and self._asked:
            # The answer to a commit may have been lost after the object came to be. It may also be another writer's.
            with suppress(*failures, EngineError):
                found = self._bucket.client.head_object(**self._place)
                if found["Metadata"].get(_WRITER) == self._writer:
                    self._bucket.client.delete_object(**self._place, IfMatch=found["ETag"])
        self._open = False
        self._waiting.clear()

    def _complete(self) -> None:
        client = self._bucket.client
        failures = self._bucket.aws.failures
        try:
            client.complete_multipart_upload(
                **self._place,
                UploadId=self._upload_id,
                MultipartUpload={"Parts": self._parts},  # type: ignore[typeddict-item]  # made by _send
            )
        except failures as error:
            # A second try of boto3 does not find the upload its first has finished.
            with self._bucket.aws.reachable():
                if error_code(error) != "NoSuchUpload":
                    raise
                if client.head_object(**self._place)["ContentLength"] != self._size:
                    raise

    def _send(self, part: bytes) -> None:
        client = self._bucket.client
        with self._bucket.aws.reachable():
            if not self._upload_id:
                begun = client.create_multipart_upload(**self._place, **self._headers, ChecksumAlgorithm="SHA256")
                self._upload_id = begun["UploadId"]
            number = len(self._parts) + 1
            checksum = _checksum(part)
            sent = client.upload_part(
                **self._place, UploadId=self._upload_id, PartNumber=number, Body=part, ChecksumSHA256=checksum
            )
        self._parts.append({"PartNumber": number, "ETag": sent["ETag"], "ChecksumSHA256": checksum})


def _checksum(data: bytes) -> str:
    return b64encode(sha256(data).digest()).decode()
