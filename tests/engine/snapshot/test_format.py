"""The manifest as it is written and read, and what is refused."""

import hashlib
import json
from pathlib import Path

import pytest

from engine.errors import BadInput, BrokenSnapshot
from engine.snapshot.format import (
    FORMAT_VERSION,
    FileEntry,
    LexiconEntry,
    Manifest,
    Shard,
    check_snapshot_id,
    file_sha256,
)
from tests.engine.corpora import NOON, SNAPSHOT, corpus_of, said

MANIFEST = Manifest(
    snapshot_id=SNAPSHOT,
    created_at=NOON,
    hayfork="0.1",
    rows=1,
    threads=1,
    copy_groups=1,
    text_bytes=4,
    first=NOON,
    last=NOON,
    shards=(Shard("0000", 0, 1),),
    files=(FileEntry("0000/text.parquet", 9, 1, "ab"),),
    conversations=(("C1", "общий", 1),),
    authors=(("U1", "Ann", 1),),
    roles=(("client", 1),),
    to_roles=(),
    kinds=(("message", 1),),
    statuses=(),
    sources=({"name": "x", "digest": "d"},),
    lexicons=(LexiconEntry(122_880, (0, 3), (3, 1, 2)),),
)


def test_a_manifest_comes_back_as_it_was_written(tmp_path: Path) -> None:
    raw = MANIFEST.to_bytes()
    assert Manifest.from_bytes(raw) == MANIFEST
    assert raw.startswith(f'{{"version":{FORMAT_VERSION},"snapshot_id":"{SNAPSHOT}"'.encode())
    real = corpus_of(tmp_path, [said(1, "x"), said(2, "y", status="open", to_role="client")]).manifest
    assert Manifest.from_bytes(real.to_bytes()) == real


def test_a_newer_format_is_refused_before_anything_of_it_is_read() -> None:
    with pytest.raises(BrokenSnapshot) as raised:
        Manifest.from_bytes(json.dumps({"version": FORMAT_VERSION + 1, "new": []}).encode())
    assert raised.value.code == "snapshot_newer"
    assert raised.value.message == (
        f"the snapshot has format {FORMAT_VERSION + 1}, this server reads up to {FORMAT_VERSION}"
    )


def test_an_older_format_is_refused_with_the_way_out() -> None:
    with pytest.raises(BrokenSnapshot) as raised:
        Manifest.from_bytes(json.dumps({"version": FORMAT_VERSION - 1, "old": []}).encode())
    assert (raised.value.code, raised.value.next_step) == ("snapshot_older", "refresh: the next snapshot has it")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"version":"x"}',
        b'{"version":null}',
        f'{{"version":{FORMAT_VERSION}}}'.encode(),
        json.dumps(json.loads(MANIFEST.to_bytes()) | {"extra": 1}).encode(),
        json.dumps(json.loads(MANIFEST.to_bytes()) | {"shards": [{"folder": "0000"}]}).encode(),
        json.dumps(json.loads(MANIFEST.to_bytes()) | {"roles": [1]}).encode(),
        *(
            json.dumps(
                json.loads(MANIFEST.to_bytes()) | {"lexicons": [{"block": 16_384, "positions": [0], "planes": planes}]}
            ).encode()
            for planes in ([2, 1], [0, 1, 1], [5, 1, 1], [1, 0, 1], [1, 1, 5], ["1", 1, 1], None)
        ),
    ],
)
def test_an_unreadable_manifest_is_a_broken_snapshot(raw: bytes) -> None:
    with pytest.raises(BrokenSnapshot) as raised:
        Manifest.from_bytes(raw)
    assert raised.value.code == "snapshot_broken"


@pytest.mark.parametrize(
    "name", ["", "..", "20161130T120000.000000Z", f"{SNAPSHOT}/..", f"{SNAPSHOT}\n", SNAPSHOT.upper()]
)
def test_nothing_but_an_id_becomes_part_of_a_location(name: str) -> None:
    assert check_snapshot_id(SNAPSHOT) == SNAPSHOT
    with pytest.raises(BadInput) as raised:
        check_snapshot_id(name)
    assert raised.value.code == "bad_snapshot_id"


def test_a_file_is_hashed_whole(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 1_000_000)
    assert file_sha256(tmp_path / "x") == hashlib.sha256(b"x" * 1_000_000).hexdigest()
