"""Where things lie below a root, the same in a folder and in a bucket.

    CURRENT                                  {"snapshot": "<id>"}, pinned: {"snapshot": "<id>", "pinned": true}
    snapshots/<id>/…                         see engine.snapshot.format
    exports/<caller>/<date>/<export>.<ext>   an export's file
    exports/records/<export>.json            its record

An export's id is the secret its link is made of, and names end up in listings and access logs: `<export>` and
`<caller>` are digests. The record holds the id, since who can read records can read the files as well.
Must never know how anything is stored.
"""

import json
import re
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256

from engine.errors import BadInput, BrokenSnapshot, NotFound, Refused
from engine.ports import Export
from engine.snapshot.format import check_snapshot_id

__all__ = [
    "EXPORT_RECORDS",
    "check_file_name",
    "conflict",
    "export_from_json",
    "export_name",
    "export_record_name",
    "export_to_json",
    "no_snapshot",
    "pinned_from_json",
    "pointer_from_json",
    "pointer_to_json",
    "snapshot_folder",
]

EXPORT_RECORDS = "exports/records/"
"""Where the records of exports lie; a caller's digest is never this word."""

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}){0,3}")
_EXTENSION = re.compile(r"[a-z0-9]{1,12}")


def snapshot_folder(snapshot_id: str) -> str:
    """`snapshots/<id>/`.

    Raises:
        BadInput: `bad_snapshot_id`.
    """
    return f"snapshots/{check_snapshot_id(snapshot_id)}/"


def check_file_name(name: str) -> str:
    """The name of a snapshot's file itself, when it is relative and plain: at most four parts, none of dots.

    Raises:
        NotFound: `no_snapshot`: no snapshot holds a file of another form.
    """
    if not _FILE_NAME.fullmatch(name):
        raise no_snapshot()
    return name


def no_snapshot() -> NotFound:
    """The error for a snapshot, or a file of one, that is not there."""
    return NotFound("no_snapshot", "there is no such snapshot or file of it", next_step="refresh, or name another")


def conflict() -> Refused:
    """The error of the refresh that lost against another."""
    return Refused(
        "refresh_conflict",
        "another snapshot became current meanwhile; this one was dropped",
        next_step="refresh again if the sources have changed since",
    )


def pointer_to_json(snapshot_id: str, *, pinned: bool = False) -> bytes:
    """What CURRENT holds."""
    said: dict[str, object] = {"snapshot": check_snapshot_id(snapshot_id)}
    return json.dumps(said | {"pinned": True} if pinned else said).encode()


def pointer_from_json(raw: bytes) -> str:
    """Read what CURRENT holds.

    Raises:
        BrokenSnapshot: `snapshot_broken`.
    """
    try:
        return check_snapshot_id(json.loads(raw)["snapshot"])
    except (ValueError, KeyError, TypeError, BadInput) as error:
        raise BrokenSnapshot(
            "snapshot_broken", "CURRENT names no snapshot", next_step="delete CURRENT, then roll back to a snapshot"
        ) from error


def pinned_from_json(raw: bytes) -> bool:
    """Whether what CURRENT holds says so; raises as `pointer_from_json`."""
    pointer_from_json(raw)
    return json.loads(raw).get("pinned") is True


def export_name(export: Export) -> str:
    """`exports/<caller>/<date>/<export>.<ext>`; the date is the day of creation in UTC.

    Raises:
        ValueError: the format is no file extension.
    """
    if not _EXTENSION.fullmatch(export.format):
        raise ValueError("an export's format is a file extension")
    caller = sha256(export.caller_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    date = datetime.fromtimestamp(export.created_at // 1_000_000, UTC).date()
    return f"exports/{caller}/{date}/{_digest(export.export_id)}.{export.format}"


def export_record_name(export_id: str) -> str:
    """`exports/records/<export>.json`."""
    return f"{EXPORT_RECORDS}{_digest(export_id)}.json"


def export_to_json(export: Export) -> bytes:
    """An export's record as compact JSON in ASCII."""
    return json.dumps(asdict(export), separators=(",", ":")).encode()


def export_from_json(raw: bytes) -> Export | None:
    """Read what `export_to_json` wrote; `None` for anything else, as for a record that is not there."""
    try:
        return Export(**json.loads(raw))
    except (ValueError, TypeError):
        return None


def _digest(export_id: str) -> str:
    # Half of SHA-256 is as unguessable as a name needs to be, and keeps a path short enough to copy.
    return sha256(export_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
