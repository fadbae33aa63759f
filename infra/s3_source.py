"""A source whose files lie in S3: a Slack export or tables, brought to a temporary folder to be read.

Decides from a listing alone whether anything changed, by key, ETag and size, so that an unchanged source
costs one request a thousand files. Must never know what the files say: what reads them is given.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from engine.errors import BadInput, quoted
from engine.model import SourceMessage, SourceReport
from engine.ports import Source
from engine.snapshot.scratch import scratch
from engine.watch import go_on
from infra.aws import AwsSettings, unreachable
from infra.s3 import Bucket, BucketSettings

__all__ = ["S3Place", "S3Source", "s3_place"]

_LOCATION = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(.*)")
_GLOB = re.compile(r"[*?\[]")
_CHUNK_BYTES = 2**20
_SPARE_BYTES = 64 * 2**20
"""Left free of the temporary folder's disk: an archive is read beside its own unpacked parts."""


@dataclass(frozen=True, slots=True)
class S3Place:
    """Objects of `bucket`: the one called `key`, or all below it when it is empty or ends in `/`.

    `pattern` is what follows `key` in a location with `*`, `?` or `[`; empty in one without.
    """

    bucket: str
    key: str
    pattern: str = ""


def s3_place(location: str) -> S3Place:
    """The place a location `s3://bucket/…` names: an object, a prefix ending in `/`, a glob, or the whole bucket.

    Raises:
        BadInput: `bad_location`.
    """
    found = _LOCATION.fullmatch(location)
    if found is None:
        raise BadInput("bad_location", f"{quoted(location)} is no place in S3", next_step="write s3://bucket/prefix/")
    bucket, key = found[1], found[2]
    glob = _GLOB.search(key)
    if glob is None:
        return S3Place(bucket, key)
    border = key.rfind("/", 0, glob.start()) + 1
    return S3Place(bucket, key[:border], key[border:])


@dataclass(frozen=True, slots=True)
class _Object:
    key: str
    name: str
    etag: str
    size: int


class S3Source:
    """What `reader` reads, once the files of `place` are local; it is given their folder, file or glob.

    `identity` is whatever else makes the messages what they are, such as the reader's own configuration: it
    is part of the digest. A place that holds a single file is given as that file, any other as a folder.
    """

    def __init__(
        self,
        place: S3Place,
        reader: Callable[[str], Source],
        *,
        name: str,
        identity: str = "",
        temp_folder: Path | None = None,
        aws: AwsSettings | None = None,
    ) -> None:
        self._place = place
        self._reader = reader
        self._name = name
        self._identity = identity
        self._temp_folder = temp_folder
        self._bucket = Bucket(BucketSettings(place.bucket, aws=aws or AwsSettings()))
        self._found: list[_Object] = []

    @property
    def name(self) -> str:
        """The name given."""
        return self._name

    def digest(self) -> str:
        """Hexadecimal digest of the listing and the identity.

        Raises:
            BadInput: `source_unreadable` when nothing lies there.
            Unavailable: S3 cannot be reached.
        """
        # Kept for `messages`: what is read next must be what this digest stands for.
        self._found = self._listing()
        listed = [[found.name, found.etag, found.size] for found in self._found]
        content = json.dumps([self._identity, self._place.pattern, listed], ensure_ascii=True)
        return blake2b(content.encode(), digest_size=32).hexdigest()

    def messages(self, report: SourceReport) -> Iterator[SourceMessage]:
        """Every message, once the files are here; they are gone again when the last one was drawn.

        Raises:
            BadInput: `source_unreadable`, as the reader does, or when the files do not fit the disk.
            Unavailable: S3 cannot be reached, or a file changed between listing and reading.
        """
        found, self._found = self._found or self._listing(), []
        with TemporaryDirectory(prefix="source-", dir=scratch(self._temp_folder)) as made:
            folder = Path(made)
            self._check_room(found, folder)
            for each in found:
                self._fetch(each, folder)
            yield from self._reader(self._local(found, folder)).messages(report)

    def _listing(self) -> list[_Object]:
        """All objects of the place by name, without the empty ones that stand for folders."""
        found = []
        pages = self._bucket.client.get_paginator("list_objects_v2")
        with self._bucket.aws.reachable():
            for page in pages.paginate(Bucket=self._place.bucket, Prefix=self._place.key):
                for entry in page.get("Contents", []):
                    name = self._name_of(entry["Key"])
                    if name:
                        found.append(_Object(entry["Key"], name, entry["ETag"], entry["Size"]))
        if not found:
            raise BadInput(
                "source_unreadable",
                f"nothing lies at the location of {quoted(self._name)}",
                next_step="upload the files, or mend the location",
            )
        return sorted(found, key=lambda each: each.name)

    def _name_of(self, key: str) -> str:
        """Its name below the place; empty for a folder's stand-in and for what merely begins alike."""
        if key.endswith("/"):
            return ""
        if key == self._place.key:
            return PurePosixPath(key).name
        if self._place.key and not self._place.key.endswith("/"):
            return ""
        return key.removeprefix(self._place.key)

    def _check_room(self, found: list[_Object], folder: Path) -> None:
        needed = sum(each.size for each in found)
        free = shutil.disk_usage(folder).free - _SPARE_BYTES
        if needed > free:
            sizes = f"{needed >> 20:,} MB, and {max(free, 0) >> 20:,} MB are free"
            raise BadInput(
                "source_unreadable",
                f"the files of {quoted(self._name)} take {sizes}",
                next_step="give the refresh more temporary storage",
            )

    def _fetch(self, found: _Object, folder: Path) -> None:
        target = folder / found.name
        if ".." in PurePosixPath(found.name).parts or folder not in target.parents:
            raise BadInput(
                "source_unreadable",
                f"{quoted(found.name)} is no name for a file",
                next_step="rename that object",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            # What changed since the listing would be read under the digest of what it was.
            answer = self._bucket.client.get_object(Bucket=self._place.bucket, Key=found.key, IfMatch=found.etag)
            with target.open("wb") as file:
                for chunk in answer["Body"].iter_chunks(_CHUNK_BYTES):
                    go_on()
                    file.write(chunk)
        except self._bucket.aws.failures as error:
            raise unreachable(error) from error

    def _local(self, found: list[_Object], folder: Path) -> str:
        if self._place.pattern:
            return str(folder / self._place.pattern)
        if len(found) == 1:
            return str(folder / found[0].name)
        return str(folder)
