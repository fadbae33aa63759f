"""What is particular to a folder: leftovers, links, permissions, a disk that fails."""

import os
from pathlib import Path

import pytest

from engine.errors import NotFound, Unavailable
from engine.ports import Export
from infra.localdir import LocalExports, LocalSnapshots

FIRST = "20261201T001500.000000Z-1a2b3c4d"
SECOND = "20261201T003000.000000Z-00000000"
HOUR = 3_600.0


def a_folder(parent: Path) -> Path:
    folder = parent / "built"
    (folder / "0000").mkdir(parents=True, exist_ok=True)
    (folder / "0000" / "text.parquet").write_bytes(b"text")
    (folder / "manifest.json").write_bytes(b"{}")
    return folder


def an_export(**changes: str) -> Export:
    return Export(changes.get("export_id", "secret"), "me", changes.get("format", "csv"), "done", 0, 1)


def age(path: Path, seconds: float) -> None:
    for entry in (path, *path.rglob("*")):
        os.utime(entry, (seconds, seconds))


def test_leftovers_of_dead_publishes_are_swept_after_the_grace_time(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("incoming/old/0000", "incoming/new/0000", f"snapshots/{SECOND}/0000"):
        (root / name).mkdir(parents=True)
        (root / name / "text.parquet").write_bytes(b"half")
    (root / "incoming" / "CURRENT.0000").write_bytes(b"")
    for name in ("incoming/old", f"snapshots/{SECOND}", "incoming/CURRENT.0000"):
        age(root / name, 1_000 * HOUR)
    age(root / "incoming" / "new", 1_009 * HOUR)
    store = LocalSnapshots(root, grace_seconds=6 * HOUR, clock=lambda: 1_010 * HOUR)
    store.publish(FIRST, a_folder(tmp_path), None)
    assert sorted(p.name for p in (root / "incoming").iterdir()) == ["new"]
    assert sorted(p.name for p in (root / "snapshots").iterdir()) == [FIRST]


def test_links_within_the_folder_to_publish_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "private").write_bytes(b"private")
    folder = a_folder(tmp_path)
    (folder / "link").symlink_to(tmp_path / "private")
    store = LocalSnapshots(tmp_path / "root")
    store.publish(FIRST, folder, None)
    assert store.sizes(FIRST) == {"0000/text.parquet": 4, "manifest.json": 2}


def test_folder_may_be_removed_after_it_was_published(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    store = LocalSnapshots(tmp_path / "root")
    store.publish(FIRST, folder, None)
    (folder / "manifest.json").unlink()
    assert store.read(FIRST, "manifest.json") == b"{}"


def test_files_are_copied_where_links_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_file_system(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", other_file_system)
    store = LocalSnapshots(tmp_path / "root")
    store.publish(FIRST, a_folder(tmp_path), None)
    assert store.read(FIRST, "0000/text.parquet") == b"text"


def test_disk_that_fails_at_the_last_step_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalSnapshots(tmp_path / "root")
    store.publish(FIRST, a_folder(tmp_path), None)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(Unavailable) as caught:
            store.publish(SECOND, a_folder(tmp_path), FIRST)
    assert caught.value.to_object() == {
        "code": "store_unreachable",
        "message": "the folder of snapshots and exports cannot be used",
        "next": "check that it exists, may be written and is not full",
    }
    assert (store.current(), store.snapshots()) == (FIRST, [FIRST])
    assert list((tmp_path / "root" / "incoming").iterdir()) == []


def test_root_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "root").write_bytes(b"")
    snapshots = LocalSnapshots(tmp_path / "root")
    exports = LocalExports(tmp_path / "root")
    with pytest.raises(Unavailable):
        snapshots.publish(FIRST, a_folder(tmp_path), None)
    with pytest.raises(Unavailable):
        exports.put(an_export())
    with pytest.raises(NotFound):
        snapshots.read(FIRST, "manifest.json")


def test_export_link_is_an_absolute_path_only_its_owner_may_read(tmp_path: Path) -> None:
    store = LocalExports(tmp_path / "root")
    sink = store.sink(an_export())
    sink.write(b"x")
    sink.commit()
    path = Path(store.link(an_export()))
    assert path.is_absolute()
    assert path.suffix == ".csv"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("extension", ["", "../csv", "CSV", "a.b", "csv\n"])
def test_format_that_is_no_extension_makes_no_path(tmp_path: Path, extension: str) -> None:
    with pytest.raises(ValueError, match="extension"):
        LocalExports(tmp_path).link(an_export(format=extension))


def test_broken_export_record_is_none(tmp_path: Path) -> None:
    store = LocalExports(tmp_path)
    store.put(an_export())
    for path in (tmp_path / "exports" / "records").iterdir():
        path.write_bytes(b"[")
    assert store.get("secret") is None
    assert list(store.expired(2**60)) == []
