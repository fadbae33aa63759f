"""A refresh: whole or not at all. Dead at any step, it leaves the current snapshot and nothing else."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engine.errors import BrokenSnapshot, NotFound, Refused, Unavailable
from engine.limits import Limits, Retention
from engine.model import SourceMessage, SourceReport
from engine.reader import SnapshotReader
from engine.refresh import Build, refresh, sweep, verify
from engine.sight import EVERYTHING
from engine.snapshot.format import FORMAT_VERSION, MANIFEST
from infra.localdir import LocalSnapshots
from tests.engine.corpora import NOON, SETTINGS, quiet, said
from tests.engine.planted import LOOKALIKES, PLANTED

HOUR = 3_600_000_000


@dataclass
class Told:
    """A source that says what it is told; `fails_after` so many messages."""

    said: Sequence[SourceMessage] = field(default_factory=lambda: [said(1, "one"), said(2, "two")])
    version: str = "1"
    fails_after: int | None = None
    name: str = "told"

    def digest(self) -> str:
        return self.version

    def messages(self, report: SourceReport) -> Iterator[SourceMessage]:
        for number, message in enumerate(self.said):
            if number == self.fails_after:
                raise OSError("the source went away")
            report.read += 1
            report.yielded += 1
            yield message


@dataclass
class Bench:
    """A root with a store, and refreshes that come so many hours after noon."""

    root: Path
    hours: int = 0

    @property
    def store(self) -> LocalSnapshots:
        return LocalSnapshots(self.root / "corpus")

    def build(self, **changes: Any) -> Build:
        plain = Build(NOON + self.hours * HOUR, "0.1", SETTINGS, Retention(), work=self.work)
        return replace(plain, **changes)

    @property
    def work(self) -> Path:
        (self.root / "work").mkdir(exist_ok=True)
        return self.root / "work"

    def refresh(self, *sources: Told, force: bool = False, **changes: Any) -> dict[str, Any]:
        self.hours += 1
        return refresh(sources or (Told(),), self.store, self.build(**changes), quiet, force=force)

    def files(self) -> dict[str, bytes]:
        """Every file of root and work, but for locks."""
        return {
            p.relative_to(self.root).as_posix(): p.read_bytes()
            for p in self.root.rglob("*")
            if p.is_file() and not p.name.endswith("lock")
        }

    def bodies(self) -> list[str]:
        reader = SnapshotReader(self.store, SETTINGS, Limits(), print)
        view = reader.view(EVERYTHING, NOON)
        told = [m.body for m in view.corpus.messages(range(view.corpus.rows))]
        reader.close()
        return told


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_refresh_reports_what_it_read_and_stored(bench: Bench) -> None:
    report = bench.refresh(Told([*Told().said, said(3, "three", kind="bot", from_role="bot"), said(1, "again")]))
    digest = report["sources"][0].pop("digest")
    assert len(digest) == 64
    assert report | {"bytes": 0} == {
        "snapshot": bench.store.current(),
        "published": True,
        "messages": 3,
        "kinds": {"message": 2, "bot": 1},
        "roles": {"unknown": 2, "bot": 1},
        "conversations": 1,
        "first": "2016-11-30T12:01:00Z",
        "last": "2016-11-30T12:03:00Z",
        "bytes": 0,
        "duplicates": 1,
        "redacted": {},
        "sources": [
            {"name": "told", "read": 4, "taken": 4, "skipped": {}, "redacted": {}, "problem_count": 0, "problems": []}
        ],
        "removed_snapshots": [],
    }
    assert report["bytes"] == sum(len(raw) for name, raw in bench.files().items() if name.endswith(".parquet"))


def stored(bench: Bench) -> str:
    """Every text of the current snapshot, folded ones and the words of its lexicon included."""
    files = [path for path in bench.root.rglob("*") if path.is_file()]
    rows = [row for path in files if path.suffix == ".parquet" for row in duckdb.read_parquet(str(path)).fetchall()]
    return "\n".join([*map(str, rows), *(path.read_text("utf-8") for path in files if path.name == MANIFEST)])


def test_no_planted_secret_is_stored_anywhere_and_all_are_counted(bench: Bench) -> None:
    messages = [said(n, planted.text, author=f"writer {n}") for n, planted in enumerate(PLANTED)]
    report = bench.refresh(Told([*messages, said(999, LOOKALIKES[0])]))
    kinds = dict(Counter(planted.kind for planted in PLANTED).most_common())
    assert (report["redacted"], report["sources"][0]["redacted"]) == (kinds, kinds)
    assert sorted(bench.bodies()) == sorted([*(planted.clean for planted in PLANTED), LOOKALIKES[0]])
    everything = stored(bench)
    assert LOOKALIKES[0] in everything
    for planted in PLANTED:
        assert planted.secret not in everything
        assert len(planted.secret) < 12 or planted.secret.casefold() not in everything
    assert [planted.secret for planted in PLANTED if planted.secret in json.dumps(report)] == []


def test_redaction_is_off_by_a_setting_and_the_report_says_so(bench: Bench) -> None:
    report = bench.refresh(Told([said(1, PLANTED[0].text)]), redact=False)
    assert (report["redacted"], report["sources"][0]["redacted"]) == ("off", {})
    assert bench.bodies() == [PLANTED[0].text]


def test_a_refresh_after_the_setting_changed_reads_its_sources_again(bench: Bench) -> None:
    source = Told([said(1, PLANTED[0].text)])
    published = [bench.refresh(source, redact=redact)["published"] for redact in (False, False, True, True, False)]
    assert published == [True, False, True, False, True]


def test_a_refresh_after_the_forms_of_secrets_changed_reads_its_sources_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Told([said(1, "x")])
    assert [bench.refresh(source)["published"] for _ in range(2)] == [True, False]
    monkeypatch.setattr("engine.refresh.FORMS_DIGEST", "those of another version")
    assert [bench.refresh(source)["published"] for _ in range(2)] == [True, False]


def test_a_refresh_of_nothing_is_a_snapshot_of_nothing(bench: Bench) -> None:
    report = bench.refresh(Told([]))
    assert (report["messages"], report["first"], report["last"]) == (0, None, None)
    assert (bench.bodies(), verify(bench.store, quiet)["rows"]) == ([], 0)


def test_the_later_edit_of_one_message_is_kept_else_the_later_one_read(bench: Bench) -> None:
    edits = [
        said(1, "edited late", edited_at=NOON + 5),
        said(1, "edited early", edited_at=NOON + 4),
        said(1, "never edited"),
        said(2, "read first"),
        said(2, "read last"),
    ]
    assert bench.refresh(Told(edits))["duplicates"] == 3
    assert bench.bodies() == ["edited late", "read last"]


def test_nothing_changed_is_nothing_done(bench: Bench) -> None:
    first = bench.refresh()
    before = bench.files()
    assert bench.refresh() == {"snapshot": first["snapshot"], "published": False, "why": "no source changed"}
    assert bench.files() == before


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        (Told(version="2"), {}),
        (Told(name="other"), {}),
        (Told(), {"rules": "new rules"}),
        (Told(), {"force": True}),
    ],
)
def test_whatever_may_change_the_answer_makes_a_new_snapshot(
    bench: Bench, source: Told, changes: dict[str, Any]
) -> None:
    first = bench.refresh()["snapshot"]
    report = bench.refresh(source, **changes)
    assert (report["published"], report["snapshot"] != first) == (True, True)


def test_a_broken_current_snapshot_is_replaced_though_no_source_changed(bench: Bench) -> None:
    first = bench.refresh()["snapshot"]
    (bench.root / "corpus" / "snapshots" / first / MANIFEST).write_text("{")
    assert bench.refresh()["published"] is True
    assert bench.bodies() == ["one", "two"]


class Killed(BaseException):
    """As a signal would."""


def steps_of(bench: Bench) -> list[tuple[str, int, int | None]]:
    steps: list[tuple[str, int, int | None]] = []
    bench.hours += 1
    refresh((Told(version="steps"),), bench.store, bench.build(), lambda *step: steps.append(step), force=True)
    return steps


def test_dead_at_any_step_a_refresh_leaves_everything_as_it_was(bench: Bench) -> None:
    steps = steps_of(bench)
    assert {step[0] for step in steps} >= {"reading messages", "sorting", "writing shards", "publishing"}
    before = bench.files()
    for last in range(len(steps)):
        seen = 0

        def die(step: str, done: int, total: int | None, last: int = last) -> None:
            nonlocal seen
            assert (done >= 0, total is None or done <= total) == (True, True), step
            if seen == last:
                raise Killed
            seen += 1

        with pytest.raises(Killed):
            refresh((Told(version=f"died {last}"),), bench.store, bench.build(), die)
        assert bench.files() == before
        assert list(bench.work.glob("*/refresh-*")) == []
    assert bench.bodies() == ["one", "two"]


def test_how_much_there_is_to_read_is_guessed_from_the_snapshot_before(bench: Bench) -> None:
    def read(steps: list[tuple[str, int, int | None]]) -> list[tuple[str, int, int | None]]:
        return [step for step in steps if step[0] == "reading messages"]

    assert read(steps_of(bench)) == [("reading messages", 2, None)]
    assert read(steps_of(bench)) == [("reading messages", 2, 2)]


def test_a_source_that_goes_away_leaves_everything_as_it_was(bench: Bench) -> None:
    bench.refresh()
    before = bench.files()
    for fails_after in (0, 1):
        with pytest.raises(OSError, match="went away"):
            bench.refresh(Told(version="2", fails_after=fails_after))
        assert bench.files() == before


@dataclass
class Failing(LocalSnapshots):
    """A store whose publishing fails, or whose deleting does."""

    root: Path
    publishes: bool = True

    def __post_init__(self) -> None:
        super().__init__(self.root)

    def publish(self, snapshot_id: str, folder: Path, expected: str | None) -> None:
        if not self.publishes:
            raise Unavailable("store_unreachable", "the store is full")
        super().publish(snapshot_id, folder, expected)

    def delete(self, snapshot_id: str) -> None:
        raise Unavailable("store_unreachable", f"cannot delete {snapshot_id}")


def test_a_store_that_fails_to_publish_keeps_the_current_snapshot(bench: Bench) -> None:
    bench.refresh()
    before = bench.files()
    with pytest.raises(Unavailable):
        refresh((Told(version="2"),), Failing(bench.root / "corpus", publishes=False), bench.build(), quiet)
    assert bench.files() == before


def test_a_store_that_fails_to_delete_has_published_all_the_same(bench: Bench) -> None:
    old = bench.refresh()["snapshot"]
    bench.hours = 100
    store = Failing(bench.root / "corpus")
    report = refresh((Told(version="2"),), store, bench.build(retention=Retention(keep=1)), quiet)
    assert (report["published"], report["removed_snapshots"]) == (True, [])
    assert store.snapshots() == [old, report["snapshot"]]


def test_the_refresh_that_comes_second_is_refused(bench: Bench) -> None:
    bench.refresh()

    def overtake(step: str, done: int, total: int | None) -> None:
        del done, total
        if step == "publishing":
            bench.refresh(Told(version="first"))

    with pytest.raises(Refused) as raised:
        refresh((Told(version="second"),), bench.store, bench.build(), overtake)
    assert raised.value.code == "refresh_conflict"
    assert len(bench.store.snapshots()) == 2


def test_old_snapshots_go_but_the_newest_the_young_and_the_current_stay(bench: Bench) -> None:
    ids = [bench.refresh(Told(version=str(n)), retention=Retention(keep=9))["snapshot"] for n in range(6)]
    assert sweep(bench.store, Retention(keep=9), NOON + 99 * HOUR) == []
    assert sweep(bench.store, Retention(keep=2, grace_seconds=100 * 3_600), NOON + 7 * HOUR) == []
    assert sweep(bench.store, Retention(keep=1, grace_seconds=3_600), NOON + 3 * HOUR) == [ids[0]]
    bench.store.point(ids[2], ids[5])
    assert sweep(bench.store, Retention(keep=2, grace_seconds=0), NOON + 99 * HOUR) == [ids[1], ids[3]]
    assert bench.store.snapshots() == [ids[2], ids[4], ids[5]]
    assert sweep(bench.store, Retention(keep=0, grace_seconds=0), NOON + 99 * HOUR) == [ids[4], ids[5]]
    assert bench.store.current() == ids[2]
    report = bench.refresh(Told(version="last"), retention=Retention(keep=1, grace_seconds=0))
    assert report["removed_snapshots"] == [ids[2]]


def corpus_files(bench: Bench) -> list[Path]:
    return sorted((bench.root / "corpus" / "snapshots").rglob("*.parquet"))


def test_verify_tells_the_files_bytes_and_rows_of_a_whole_snapshot(bench: Bench) -> None:
    report = bench.refresh()
    steps: list[tuple[str, int, int | None]] = []
    told = verify(bench.store, lambda *step: steps.append(step))
    files = corpus_files(bench)
    assert told == {"snapshot": report["snapshot"], "files": len(files), "bytes": report["bytes"], "rows": 2}
    assert steps == [("hashing files", done, len(files)) for done in range(len(files) + 1)]


@pytest.mark.parametrize("harm", ["flip", "truncate", "remove"])
def test_verify_names_a_file_that_is_not_what_it_was(bench: Bench, harm: str) -> None:
    bench.refresh()
    for path in corpus_files(bench):
        raw = path.read_bytes()
        if harm == "flip":
            middle = len(raw) // 2
            path.write_bytes(raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :])
        elif harm == "truncate":
            path.write_bytes(raw[:-1])
        else:
            path.unlink()
        with pytest.raises(BrokenSnapshot) as raised:
            verify(bench.store, quiet)
        name = f"{path.parent.name}/{path.name}"
        total = len(corpus_files(bench)) + (harm == "remove")
        assert raised.value.message == f"1 of {total} files are not what the manifest says: {name}"
        path.write_bytes(raw)
    assert verify(bench.store, quiet)["rows"] == 2


def test_verify_before_the_first_refresh_says_what_to_do(bench: Bench) -> None:
    with pytest.raises(NotFound) as raised:
        verify(bench.store, quiet)
    assert (raised.value.code, raised.value.next_step) == ("no_snapshot", "run refresh")


def test_what_cannot_be_read_back_is_not_published(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.refresh()
    before = bench.files()
    # The one way to write what reads back otherwise: a writer whose format its own reader refuses.
    monkeypatch.setattr("engine.snapshot.format.FORMAT_VERSION", FORMAT_VERSION - 1)
    with pytest.raises(BrokenSnapshot) as raised:
        bench.refresh(Told(version="2"))
    assert raised.value.code == "snapshot_newer"
    assert bench.files() == before


def test_a_current_snapshot_that_lacks_a_file_is_replaced_though_no_source_changed(bench: Bench) -> None:
    bench.refresh()
    corpus_files(bench)[0].unlink()
    assert bench.refresh()["published"] is True


def test_snapshots_of_one_second_stand_in_the_order_they_were_made(bench: Bench) -> None:
    ids = [bench.refresh(Told(version=str(n)), now=NOON + n, retention=Retention(keep=9))["snapshot"] for n in range(6)]
    assert bench.store.snapshots() == ids
