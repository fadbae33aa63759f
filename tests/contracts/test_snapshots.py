"""What every `SnapshotStore` does."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from threading import Barrier

import duckdb
import pytest

from engine.errors import BadInput, EngineError, NotFound, Refused
from engine.ports import SnapshotStore
from engine.snapshot.format import FileEntry
from tests.contracts import publish_worker
from tests.contracts.benches import SNAPSHOT_ADAPTERS, SnapshotBench, snapshot_bench

FIRST = "20261201T001500.000000Z-1a2b3c4d"
SECOND = "20261201T003000.000000Z-00000000"
THIRD = "20261202T000000.000000Z-ffffffff"
FOURTH = "20261202T010000.000000Z-0b0b0b0b"
MISSING = "20261203T000000.000000Z-0a0a0a0a"

NOT_IDS = [
    "",
    ".",
    "..",
    "../" + FIRST,
    FIRST + "/",
    FIRST + "\n",
    FIRST.lower(),
    "20261201T001500.000000Z",
    "\x00",
    "CURRENT",
]
NOT_NAMES = [
    "",
    ".",
    "..",
    "../../CURRENT",
    "/etc/passwd",
    "0000/../manifest.json",
    "a//b",
    "\x00",
    ".hidden",
    "a\\b",
]


@pytest.fixture(params=SNAPSHOT_ADAPTERS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> SnapshotBench:
    return snapshot_bench(request, tmp_path)


@pytest.fixture
def store(bench: SnapshotBench) -> SnapshotStore:
    return bench.open()


def a_snapshot(parent: Path, snapshot_id: str) -> Path:
    """A folder with two Parquet files of 1,000 rows and a manifest that says whose they are."""
    folder = parent / f"built-{snapshot_id}"
    (folder / "0000").mkdir(parents=True)
    with duckdb.connect() as connection:
        for name in ("narrow", "text"):
            relation = connection.sql(f"SELECT range AS row, '{snapshot_id} {name}' AS said FROM range(1000)")
            relation.write_parquet(str(folder / "0000" / f"{name}.parquet"))
    (folder / "manifest.json").write_bytes(b'{"id":"%s"}' % snapshot_id.encode())
    return folder


def sizes_of(folder: Path) -> dict[str, int]:
    return {p.relative_to(folder).as_posix(): p.stat().st_size for p in folder.rglob("*") if p.is_file()}


def test_empty_root_has_no_current_snapshot_and_no_snapshots(store: SnapshotStore) -> None:
    assert store.current() is None
    assert store.snapshots() == []


def test_published_snapshot_is_current_and_whole(store: SnapshotStore, bench: SnapshotBench, tmp_path: Path) -> None:
    folder = a_snapshot(tmp_path, FIRST)
    store.publish(FIRST, folder, None)
    for reader in (store, bench.open()):
        assert reader.current() == FIRST
        assert reader.snapshots() == [FIRST]
        assert reader.sizes(FIRST) == sizes_of(folder)
        assert {name: reader.read(FIRST, name) for name in reader.sizes(FIRST)} == {
            name: (folder / name).read_bytes() for name in sizes_of(folder)
        }


def test_digest_of_a_stored_file_is_that_of_its_bytes(store: SnapshotStore, tmp_path: Path) -> None:
    folder = a_snapshot(tmp_path, FIRST)
    store.publish(FIRST, folder, None)
    assert {name: store.sha256(FIRST, name) for name in sizes_of(folder)} == {
        name: sha256((folder / name).read_bytes()).hexdigest() for name in sizes_of(folder)
    }


def entries_of(folder: Path) -> list[FileEntry]:
    """What a manifest says of the files."""
    paths = sorted(folder.rglob("*.parquet"))
    return [
        FileEntry(p.relative_to(folder).as_posix(), p.stat().st_size, 1_000, sha256(p.read_bytes()).hexdigest())
        for p in paths
    ]


def test_files_as_published_are_not_altered_and_those_cut_or_gone_are(bench: SnapshotBench, tmp_path: Path) -> None:
    folder = a_snapshot(tmp_path, FIRST)
    bench.open().publish(FIRST, folder, None)
    files = entries_of(folder)
    assert bench.open().altered(FIRST, files) == []
    gone = FileEntry("0000/terms.parquet", 10, 1, "00" * 32)
    assert bench.open().altered(FIRST, [*files, gone]) == [gone.name]
    text = (folder / "0000/text.parquet").read_bytes()
    bench.plant(f"snapshots/{FIRST}/0000/text.parquet", text[:-1])
    assert bench.open().altered(FIRST, files) == ["0000/text.parquet"]


def test_one_bit_in_a_file_that_counts_are_made_of_is_found_without_being_asked(
    bench: SnapshotBench, tmp_path: Path
) -> None:
    folder = a_snapshot(tmp_path, FIRST)
    bench.open().publish(FIRST, folder, None)
    files = entries_of(folder)
    narrow = bytearray((folder / "0000/narrow.parquet").read_bytes())
    narrow[len(narrow) // 2] ^= 1
    bench.plant(f"snapshots/{FIRST}/0000/narrow.parquet", bytes(narrow))
    assert bench.open().altered(FIRST, files) == ["0000/narrow.parquet"]


def test_published_snapshot_is_read_by_a_locked_duckdb(store: SnapshotStore, tmp_path: Path) -> None:
    store.publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    with duckdb.connect(config={"allow_persistent_secrets": False}) as connection:
        store.prepare(connection)
        connection.execute("SET allowed_directories = ?", [[store.prefix(FIRST)]])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        sql = "SELECT count(*), max(row), min(said) FROM read_parquet(?)"
        for _ in range(2):
            rows = connection.cursor().execute(sql, [store.prefix(FIRST) + "0000/text.parquet"]).fetchall()
            assert rows == [(1_000, 999, f"{FIRST} text")]


def test_prefix_ends_in_a_slash_and_names_the_snapshot(store: SnapshotStore) -> None:
    assert store.prefix(FIRST) == f"{store.location}{FIRST}/"
    assert store.location.endswith("/snapshots/")


def test_snapshots_are_listed_oldest_first(store: SnapshotStore, tmp_path: Path) -> None:
    expected = None
    for snapshot_id in (THIRD, FIRST, SECOND):
        store.publish(snapshot_id, a_snapshot(tmp_path, snapshot_id), expected)
        expected = snapshot_id
    assert store.snapshots() == [FIRST, SECOND, THIRD]
    assert store.current() == SECOND


@pytest.mark.parametrize("expected", [None, SECOND])
def test_publish_against_another_current_is_refused_and_leaves_nothing(
    store: SnapshotStore, bench: SnapshotBench, tmp_path: Path, expected: str | None
) -> None:
    store.publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    before = bench.names()
    with pytest.raises(Refused) as caught:
        store.publish(THIRD, a_snapshot(tmp_path, THIRD), expected)
    assert caught.value.code == "refresh_conflict"
    assert store.current() == FIRST
    assert bench.names() == before


def test_of_two_publishes_at_once_one_wins_and_the_other_leaves_nothing(bench: SnapshotBench, tmp_path: Path) -> None:
    folders = {i: a_snapshot(tmp_path, i) for i in (FIRST, SECOND)}
    start = Barrier(2)

    def publish(snapshot_id: str) -> str:
        store = bench.open()
        start.wait()
        try:
            store.publish(snapshot_id, folders[snapshot_id], None)
        except EngineError as error:
            return error.code
        return "won"

    with ThreadPoolExecutor(2) as pool:
        outcomes = dict(zip(folders, pool.map(publish, folders), strict=True))
    assert sorted(outcomes.values()) == ["refresh_conflict", "won"]
    winner = next(i for i, outcome in outcomes.items() if outcome == "won")
    assert bench.open().current() == winner
    assert bench.names() == sorted(["CURRENT", *(f"snapshots/{winner}/{n}" for n in sizes_of(folders[winner]))])


def test_a_second_publish_of_the_same_id_changes_nothing(store: SnapshotStore, tmp_path: Path) -> None:
    store.publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    before = store.sizes(FIRST)
    with pytest.raises(Refused):
        store.publish(FIRST, a_snapshot(tmp_path / "again", FIRST), FIRST)
    assert (store.current(), store.sizes(FIRST)) == (FIRST, before)


def test_folder_without_a_manifest_is_not_published(store: SnapshotStore, bench: SnapshotBench, tmp_path: Path) -> None:
    folder = a_snapshot(tmp_path, FIRST)
    (folder / "manifest.json").unlink()
    with pytest.raises(ValueError, match="manifest"):
        store.publish(FIRST, folder, None)
    assert bench.names() == []


def test_snapshot_without_its_manifest_is_none(store: SnapshotStore, bench: SnapshotBench) -> None:
    bench.plant(f"snapshots/{FIRST}/0000/text.parquet", b"half")
    bench.plant("snapshots/notes/manifest.json", b"{}")
    assert store.snapshots() == []
    with pytest.raises(NotFound):
        store.read(FIRST, "manifest.json")
    with pytest.raises(NotFound):
        store.point(FIRST, None)
    assert store.current() is None


def test_publish_that_dies_at_any_step_leaves_the_current_snapshot_untouched(
    bench: SnapshotBench, tmp_path: Path
) -> None:
    store = bench.open()
    store.publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    expected = {"current": FIRST, "files": store.sizes(FIRST)}
    new = a_snapshot(tmp_path, SECOND)
    command = [sys.executable, publish_worker.__file__, str(new), FIRST, *bench.arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as worker:
        assert worker.stdin
        assert worker.stdout
        for step in range(1, 200):
            snapshot_id = f"20261201T003000.000000Z-{step:08x}"
            worker.stdin.write(f"{step} {snapshot_id}\n")
            ended = int(worker.stdout.readline())
            current = store.current()
            for listed in store.snapshots():
                assert store.sizes(listed) == (expected["files"] if listed == FIRST else sizes_of(new))
            if current != FIRST:
                break
            assert ended == publish_worker.DEAD
    assert current == snapshot_id
    assert step > 5
    assert store.sizes(FIRST) == expected["files"]
    assert store.read(FIRST, "manifest.json") == b'{"id":"%s"}' % FIRST.encode()


def test_point_rolls_back_to_an_older_snapshot(store: SnapshotStore, tmp_path: Path) -> None:
    store.publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    store.publish(SECOND, a_snapshot(tmp_path, SECOND), FIRST)
    store.point(FIRST, SECOND)
    assert store.current() == FIRST
    assert store.snapshots() == [FIRST, SECOND]


def test_a_pin_survives_every_publish_until_it_ends(store: SnapshotStore, bench: SnapshotBench, tmp_path: Path) -> None:
    assert not store.pinned()
    store.publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    store.publish(SECOND, a_snapshot(tmp_path, SECOND), FIRST)
    store.point(FIRST, SECOND, pinned=True)
    assert (bench.open().current(), bench.open().pinned()) == (FIRST, True)
    store.publish(THIRD, a_snapshot(tmp_path, THIRD), FIRST)
    assert (bench.open().current(), bench.open().pinned()) == (FIRST, True)
    assert store.snapshots() == [FIRST, SECOND, THIRD]
    assert store.sizes(THIRD) == sizes_of(tmp_path / f"built-{THIRD}")
    store.point(THIRD, FIRST)
    assert (bench.open().current(), bench.open().pinned()) == (THIRD, False)
    store.publish(FOURTH, a_snapshot(tmp_path, FOURTH), THIRD)
    assert store.current() == FOURTH


def test_the_current_snapshot_is_pinned_and_let_go_where_it_is(store: SnapshotStore, tmp_path: Path) -> None:
    store.publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    for pinned in (True, True, False):
        store.point(FIRST, FIRST, pinned=pinned)
        assert (store.current(), store.pinned()) == (FIRST, pinned)


def test_of_a_publish_and_a_pin_at_once_the_pin_holds_or_is_refused(bench: SnapshotBench, tmp_path: Path) -> None:
    bench.open().publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    folder = a_snapshot(tmp_path, SECOND)
    start = Barrier(2)

    def outcome(step: Callable[[SnapshotStore], None]) -> str:
        store = bench.open()
        start.wait()
        try:
            step(store)
        except EngineError as error:
            return error.code
        return "done"

    with ThreadPoolExecutor(2) as pool:
        publishing = pool.submit(outcome, lambda store: store.publish(SECOND, folder, FIRST))
        pinning = pool.submit(outcome, lambda store: store.point(FIRST, FIRST, pinned=True))
        ended = (publishing.result(), pinning.result())
    store = bench.open()
    if ended[1] == "done":
        assert (store.current(), store.pinned()) == (FIRST, True)
    else:
        assert (ended, store.current(), store.pinned()) == (("done", "refresh_conflict"), SECOND, False)


def test_point_to_what_is_not_there_or_against_another_current_fails(store: SnapshotStore, tmp_path: Path) -> None:
    store.publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    store.publish(SECOND, a_snapshot(tmp_path, SECOND), FIRST)
    with pytest.raises(NotFound) as missing:
        store.point(MISSING, SECOND)
    with pytest.raises(Refused) as lost:
        store.point(FIRST, THIRD)
    assert (missing.value.code, lost.value.code) == ("no_snapshot", "refresh_conflict")
    assert store.current() == SECOND


def test_deleted_snapshot_leaves_nothing(store: SnapshotStore, bench: SnapshotBench, tmp_path: Path) -> None:
    store.publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    store.publish(SECOND, a_snapshot(tmp_path, SECOND), FIRST)
    store.delete(FIRST)
    assert store.snapshots() == [SECOND]
    assert store.sizes(FIRST) == {}
    assert not [name for name in bench.names() if FIRST in name]


def test_current_or_missing_snapshot_is_not_deleted(store: SnapshotStore, bench: SnapshotBench, tmp_path: Path) -> None:
    store.publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    before = bench.names()
    store.delete(FIRST)
    store.delete(MISSING)
    assert bench.names() == before


def test_what_is_no_file_of_the_snapshot_is_not_found(store: SnapshotStore, tmp_path: Path) -> None:
    store.publish(FIRST, a_snapshot(tmp_path, FIRST), None)
    for name in ("0000", "0000/none.parquet", "manifest.json/more", *NOT_NAMES):
        for look in (store.read, store.sha256):
            with pytest.raises(NotFound) as caught:
                look(FIRST, name)
            assert caught.value.code == "no_snapshot", name


def test_no_location_is_built_from_what_is_no_id(store: SnapshotStore, tmp_path: Path) -> None:
    folder = a_snapshot(tmp_path, FIRST)
    calls: list[Callable[[str], object]] = [
        lambda snapshot_id: store.read(snapshot_id, "manifest.json"),
        lambda snapshot_id: store.sha256(snapshot_id, "manifest.json"),
        store.prefix,
        store.sizes,
        store.delete,
        lambda snapshot_id: store.point(snapshot_id, None),
        lambda snapshot_id: store.publish(snapshot_id, folder, None),
    ]
    for snapshot_id in NOT_IDS:
        for call in calls:
            with pytest.raises(BadInput) as caught:
                call(snapshot_id)
            assert caught.value.code == "bad_snapshot_id", snapshot_id


def test_broken_pointer_is_a_clear_error(store: SnapshotStore, bench: SnapshotBench) -> None:
    for content in (b"", b"[]", b"{}", b'{"snapshot":"../x"}', b'{"snapshot":7}', b"\xff"):
        bench.plant("CURRENT", content)
        with pytest.raises(EngineError) as caught:
            store.current()
        assert caught.value.code == "snapshot_broken", content
