"""Whether a snapshot's objects are those that were published, told by a listing and without reading one.

A listing gives of each object its size and its ETag, which is another for other bytes. When a snapshot is published
the digest of its listing, the seal, is noted on its manifest, and comes back with it. Where the two agree nothing was
changed. Where they do not, objects may have been copied whole (an ETag depends on how an object was written): then
the SHA-256 that S3 keeps of each decides. Must never know what a snapshot says.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from hashlib import sha256

from engine.snapshot.format import MANIFEST, FileEntry
from infra.s3 import Bucket, Listed

__all__ = ["SEAL", "altered_files", "seal_of"]

SEAL = "listing-sha256"
"""The name of the note on a manifest."""

_ASKED_AT_ONCE = 8


def seal_of(folder: str, listed: Iterable[Listed]) -> str:
    """SHA-256 in hex over name, size and ETag of the objects below `folder`, less the manifest."""
    lines = sorted(f"{each.name[len(folder) :]}\0{each.size}\0{each.etag}\n" for each in listed)
    manifest = f"{MANIFEST}\0"
    return sha256("".join(line for line in lines if not line.startswith(manifest)).encode()).hexdigest()


def altered_files(bucket: Bucket, folder: str, files: Sequence[FileEntry], seal: str) -> list[str]:
    """Names of the files below `folder` that are missing or not as published; `seal` is empty where none was noted.

    One request as long as nothing was changed. An object written in parts has no SHA-256 of its own in S3: under a
    seal that does not hold it counts as altered, without any seal its size must do.

    Raises:
        Unavailable: the store cannot be reached.
    """
    listed = list(bucket.list(folder))
    sizes = {each.name[len(folder) :]: each.size for each in listed}
    wrong = [entry.name for entry in files if sizes.get(entry.name) != entry.size]
    if wrong or seal_of(folder, listed) == seal:
        return wrong

    def is_altered(entry: FileEntry, call: Context) -> bool:
        kept = call.run(bucket.kept_sha256, folder + entry.name)
        return bool(seal) if kept is None else kept != entry.sha256

    # Each in the context of the call, which counts what it asks and ends in its time.
    calls = [copy_context() for _ in files]
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        answers = pool.map(is_altered, files, calls)
        return [entry.name for entry, altered in zip(files, answers, strict=True) if altered]
