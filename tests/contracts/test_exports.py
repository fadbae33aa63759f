"""What every `ExportStore` does."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.ports import Export, ExportStore
from tests.contracts.benches import EXPORT_ADAPTERS, NOON, ExportBench, export_bench

HOUR = 3_600_000_000


@pytest.fixture(params=EXPORT_ADAPTERS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> ExportBench:
    return export_bench(request, tmp_path)


@pytest.fixture
def store(bench: ExportBench) -> ExportStore:
    return bench.open()


def an_export(export_id: str = "k3Jx0qk2TzW9bN7cVfY1LgAAAAAAAAAAAAAAAAAAAAA", **changes: object) -> Export:
    export = Export(
        export_id=export_id,
        caller_id="Zoë <zoe@partner.example>/../..",
        format="jsonl",
        state="running",
        created_at=NOON,
        expires_at=NOON + HOUR,
        request='{"query":"суббота \\"x\\""}',
    )
    return replace(export, **changes)  # type: ignore[arg-type]  # fields by name, of mixed types


def write(store: ExportStore, export: Export, *pieces: bytes) -> None:
    store.put(export)
    sink = store.sink(export)
    for piece in pieces:
        sink.write(piece)
    sink.commit()


def test_unknown_export_has_no_record(store: ExportStore) -> None:
    for export_id in ("nobody", "", "../records", "\x00", "\ud800", "x" * 5_000):
        assert store.get(export_id) is None
        store.revoke(export_id)
    assert list(store.expired(2**60)) == []


def test_record_comes_back_whole_and_is_replaced(store: ExportStore, bench: ExportBench) -> None:
    done = an_export(state="done", rows=194, size=51_848, sha256="65f9")
    store.put(an_export())
    assert bench.open().get(done.export_id) == an_export()
    store.put(done)
    assert bench.open().get(done.export_id) == done


@pytest.mark.parametrize("pieces", [(), (b"",), (b"a", b"", b"b\n"), ("ж".encode() * 100,)])
def test_committed_file_is_fetched_by_its_link(
    store: ExportStore, bench: ExportBench, pieces: tuple[bytes, ...]
) -> None:
    write(store, an_export(), *pieces)
    assert bench.fetch(store, an_export()) == b"".join(pieces)


def test_large_file_comes_back_whole(store: ExportStore, bench: ExportBench) -> None:
    line = b"%08d a line of an export that is written in many pieces\n"
    pieces = [b"".join(line % n for n in range(start, start + 4_000)) for start in range(0, 240_000, 4_000)]
    write(store, an_export(), *pieces)
    assert bench.fetch(store, an_export()) == b"".join(pieces)


def test_file_is_not_there_before_its_commit(store: ExportStore, bench: ExportBench) -> None:
    store.put(an_export())
    sink = store.sink(an_export())
    sink.write(b"x" * 6_000_000)
    assert bench.fetch(store, an_export()) is None
    sink.commit()
    assert bench.fetch(store, an_export()) == b"x" * 6_000_000


@pytest.mark.parametrize("size", [0, 10, 12_000_000])
def test_aborted_file_leaves_nothing(store: ExportStore, bench: ExportBench, size: int) -> None:
    sink = store.sink(an_export())
    sink.write(b"x" * size)
    sink.abort()
    sink.abort()
    assert bench.names() == []


def test_abort_after_commit_keeps_the_file(store: ExportStore, bench: ExportBench) -> None:
    store.put(an_export())
    sink = store.sink(an_export())
    sink.write(b"kept")
    sink.commit()
    sink.abort()
    assert bench.fetch(store, an_export()) == b"kept"


def test_revoked_export_is_gone_and_others_stay(store: ExportStore, bench: ExportBench) -> None:
    other = an_export("other")
    write(store, an_export(), b"mine")
    write(store, other, b"theirs")
    store.revoke(an_export().export_id)
    store.revoke(an_export().export_id)
    assert store.get(an_export().export_id) is None
    assert bench.fetch(store, an_export()) is None
    assert bench.fetch(store, other) == b"theirs"
    assert len(bench.names()) == 2


def test_expired_exports_are_named_first_to_expire_first(store: ExportStore) -> None:
    for name, hours in (("c", 3), ("a", 1), ("b", 2)):
        store.put(an_export(name, expires_at=NOON + hours * HOUR))
    assert list(store.expired(NOON)) == []
    assert list(store.expired(NOON + 2 * HOUR)) == ["a", "b"]
    store.revoke("a")
    assert list(store.expired(NOON + 9 * HOUR)) == ["b", "c"]


def test_names_tell_neither_caller_nor_secret(store: ExportStore, bench: ExportBench) -> None:
    export = an_export()
    write(store, export, b"x")
    names = bench.names()
    assert len(names) == 2
    assert not [n for n in names if export.export_id in n or "zoe" in n.lower() or ".." in n]
    assert all(n.startswith("exports/") for n in names)
    assert [n.split("/")[2] for n in names if n.endswith(".jsonl")] == ["2026-12-01"]
