"""Which snapshot a call reads, and what is served when the newest cannot be."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.errors import BrokenSnapshot, NotFound
from engine.limits import Limits
from engine.reader import SnapshotReader
from engine.sight import EVERYTHING, Sight
from engine.snapshot.format import FORMAT_VERSION, MANIFEST
from infra.localdir import LocalSnapshots
from tests.engine.corpora import NOON, SETTINGS, said
from tests.engine.test_refresh import Bench, Told

SECOND = 1_000_000


class Watched(LocalSnapshots):
    """A store that counts the looks at CURRENT and the renewals."""

    looks = renewals = 0

    def current(self) -> str | None:
        self.looks += 1
        return super().current()

    def renew(self, connection: object) -> None:
        self.renewals += 1
        super().renew(connection)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def reader_of(bench: Bench, warnings: list[str] | None = None) -> tuple[SnapshotReader, Watched]:
    store = Watched(bench.root / "corpus")
    return SnapshotReader(store, SETTINGS, Limits(), (warnings if warnings is not None else []).append), store


def test_nothing_is_opened_before_the_first_refresh(bench: Bench) -> None:
    reader, _ = reader_of(bench)
    with pytest.raises(NotFound) as raised:
        reader.view(EVERYTHING, NOON)
    assert raised.value.code == "no_snapshot"
    bench.refresh()
    assert reader.view(EVERYTHING, NOON).corpus.rows == 2
    reader.close()


def test_the_pointer_is_looked_at_again_after_thirty_seconds_only(bench: Bench) -> None:
    bench.refresh()
    reader, store = reader_of(bench)
    old = reader.view(EVERYTHING, NOON)
    bench.refresh(Told([said(1, "fresh")], version="2"))
    assert reader.view(EVERYTHING, NOON + 29 * SECOND) is old
    assert store.looks == 1
    fresh = reader.view(EVERYTHING, NOON + 30 * SECOND)
    assert (store.looks, fresh.corpus.rows, old.corpus.rows) == (2, 1, 2)
    assert [m.body for m in old.corpus.messages([0, 1])] == ["one", "two"]
    assert reader.view(EVERYTHING, NOON + 61 * SECOND) is fresh
    assert (store.looks, store.renewals) == (3, 3)
    assert reader.view(EVERYTHING, NOON) is fresh
    assert store.looks == 4
    reader.close()


def test_each_sight_has_its_view_and_the_least_used_go(bench: Bench) -> None:
    bench.refresh()
    reader, _ = reader_of(bench)
    everything = reader.view(EVERYTHING, NOON)
    none = reader.view(Sight(deny=("general",)), NOON)
    assert (everything.size, none.size) == (2, 0)
    for number in range(40):
        reader.view(Sight(oldest=number), NOON)
        assert reader.view(EVERYTHING, NOON) is everything
    assert reader.view(Sight(deny=("general",)), NOON) is not none
    reader.close()


@pytest.mark.parametrize("harm", ["manifest", "newer", "missing", "truncated", "pointer", "gone"])
def test_a_broken_snapshot_is_not_served_when_an_older_one_is_open(bench: Bench, harm: str) -> None:
    bench.refresh()
    warnings: list[str] = []
    reader, store = reader_of(bench, warnings)
    old = reader.view(EVERYTHING, NOON)
    fresh = bench.refresh(Told([said(1, "fresh")], version="2"))["snapshot"]
    folder = bench.root / "corpus" / "snapshots" / fresh
    manifest, table = folder / MANIFEST, next(folder.rglob("text.parquet"))
    whole = {path: path.read_bytes() for path in (manifest, table, bench.root / "corpus" / "CURRENT")}
    if harm == "manifest":
        manifest.write_text("{}")
    elif harm == "newer":
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": FORMAT_VERSION + 1}))
    elif harm == "missing":
        table.unlink()
    elif harm == "truncated":
        table.write_bytes(whole[table][:-1])
    elif harm == "pointer":
        (bench.root / "corpus" / "CURRENT").write_text("nothing")
    else:
        (bench.root / "corpus" / "CURRENT").unlink()
    assert reader.view(EVERYTHING, NOON + 31 * SECOND) is old
    code = {"newer": "snapshot_newer", "gone": "no_snapshot"}.get(harm, "snapshot_broken")
    assert warnings == [f"the current snapshot cannot be opened ({code}); the one before is served"]
    looks = store.looks
    assert reader.view(EVERYTHING, NOON + 32 * SECOND) is old
    assert store.looks == looks
    other, _ = reader_of(bench)
    if harm in {"pointer", "gone"}:
        with pytest.raises((BrokenSnapshot, NotFound)) as raised:
            other.view(EVERYTHING, NOON)
        assert raised.value.code == code
    else:
        assert other.view(EVERYTHING, NOON).corpus.rows == old.corpus.rows
    for path, raw in whole.items():
        path.write_bytes(raw)
    assert reader.view(EVERYTHING, NOON + 62 * SECOND).corpus.rows == 1
    reader.close()
    other.close()


def test_a_closed_reader_opens_again(bench: Bench) -> None:
    bench.refresh()
    reader, _ = reader_of(bench)
    reader.close()
    reader.view(EVERYTHING, NOON)
    reader.close()
    assert reader.view(EVERYTHING, NOON).corpus.rows == 2
    reader.close()


class Held(Watched):
    """A store whose first look at CURRENT waits."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.go_on, self.looking = threading.Event(), threading.Event()

    def current(self) -> str | None:
        self.looking.set()
        self.go_on.wait(30)
        return super().current()


@pytest.mark.parametrize("is_there", [True, False])
def test_who_waited_for_the_first_look_of_another_takes_what_that_one_met(bench: Bench, is_there: bool) -> None:  # noqa: FBT001 - a table
    if is_there:
        bench.refresh()
    store = Held(bench.root / "corpus")
    reader = SnapshotReader(store, SETTINGS, Limits(), print)

    def rows(_: int) -> int | str:
        try:
            return reader.view(EVERYTHING, NOON).corpus.rows
        except NotFound as error:
            return error.code

    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(rows, 0)
        assert store.looking.wait(30)
        second = callers.submit(rows, 1)
        # The second has asked for its turn when it can be asked for no longer.
        while not second.running():
            pass
        store.go_on.set()
        assert (first.result(), second.result()) == ((2, 2) if is_there else ("no_snapshot", "no_snapshot"))
    reader.close()


def test_who_waited_for_a_look_that_broke_off_looks_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.refresh()
    reader, _ = reader_of(bench)

    class Turn:
        """Comes when another look has ended without an answer."""

        def acquire(self) -> bool:
            reader._looks += 1
            return True

        def release(self) -> None:
            pass

    with monkeypatch.context() as patch:
        patch.setattr(reader, "_looking", Turn())
        assert reader.view(EVERYTHING, NOON).corpus.rows == 2
    reader.close()
