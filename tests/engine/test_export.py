"""`export_messages`: every match, whole, oldest first, in a file that no spreadsheet executes."""

import csv
import hashlib
import io
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engine.answer import Answer
from engine.choices import COLUMNS, FORMATS
from engine.errors import BadInput, BrokenSnapshot, NotFound, Refused, Unavailable
from engine.export import Job, begin, resume, sight_of, state_of
from engine.export_rows import encoded
from engine.model import Message
from engine.ports import Export
from engine.requests import Criteria, ExportRequest
from engine.sight import Caller
from engine.times import iso, iso_micros
from infra.localdir import LocalExports
from tests.engine.corpora import (
    NOON,
    SETTINGS,
    Desk,
    corpus_of,
    desk_of,
    naive_hits,
    random_messages,
    random_query,
    said,
)

HOUR = 3_600_000_000


def begun(desk: Desk, store: LocalExports, query: str = "", **arguments: Any) -> Job:
    job = begin(ExportRequest(Criteria(query, **arguments.pop("filters", {})), **arguments), desk.call, store, SETTINGS)
    assert isinstance(job, Job)
    return job


def exported(desk: Desk, store: LocalExports, query: str = "", **arguments: Any) -> tuple[Job, bytes]:
    job = begun(desk, store, query, **arguments)
    job.run()
    return job, Path(store.link(job.export)).read_bytes()


def files(store_root: Path) -> list[Path]:
    return [p for p in (store_root / "exports").rglob("*") if p.is_file() and "records" not in p.parts]


def rows_of(raw: bytes, form: str, folder: Path) -> list[dict[str, Any]]:
    """What a reader of each format gets; null and empty alike left out."""
    if form == "jsonl":
        return [json.loads(line) for line in raw.decode().splitlines()]
    if form == "csv":
        rows: Sequence[dict[str, Any]] = list(csv.DictReader(io.StringIO(raw.decode(), newline="")))
    else:
        path = folder / "read.parquet"
        path.write_bytes(raw)
        found = duckdb.sql(f"SELECT * FROM '{path}'")
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    return [{name: value for name, value in row.items() if value not in (None, "")} for row in rows]


def plain(value: Any) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if hasattr(value, "year") else str(value).removeprefix("'")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("seed", range(4))
def test_a_file_holds_the_very_matches_oldest_first(tmp_path: Path, seed: int, form: str) -> None:
    chance = random.Random(seed)
    messages = random_messages(chance, 60)
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, shard_rows=chance.choice((9, 1_000)), index=False))
    store = LocalExports(tmp_path)
    query = next(q for q in iter(lambda: random_query(chance), "") if naive_hits(messages, q))
    job, raw = exported(desk, store, query, format=form)
    expected = [
        {
            name: iso_micros(value) if COLUMNS[name] == "TIMESTAMP" else value
            for name in COLUMNS
            if (value := getattr(m, name)) not in (None, "")
        }
        for m in sorted(naive_hits(messages, query), key=lambda m: m.sent_at)
    ]
    told = [{name: plain(value) for name, value in row.items()} for row in rows_of(raw, form, tmp_path)]
    assert told == [{name: plain(value) for name, value in row.items()} for row in expected]
    answer = job.answer()
    assert {name: answer.object[name] for name in ("rows", "bytes", "sha256", "format")} == {
        "rows": len(expected),
        "bytes": len(raw),
        "sha256": hashlib.sha256(raw).hexdigest(),
        "format": form,
    }
    assert answer.object["link"] == answer.link == store.link(job.export)
    assert answer.object["expires"] == iso(NOON + HOUR)


@pytest.fixture
def store(tmp_path: Path) -> LocalExports:
    return LocalExports(tmp_path)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    messages = [said(n, f"docker {n}", author=("Ann", "=cmd()")[n % 2]) for n in range(6)] + [said(9, "docker 0")]
    return desk_of(tmp_path, corpus_of(tmp_path, messages, index=False), brute=True)


def test_an_export_says_where_the_file_is_and_never_a_text(desk: Desk, store: LocalExports) -> None:
    job, raw = exported(desk, store, "docker")
    told = job.answer()
    digest = hashlib.sha256(raw).hexdigest()
    assert told.text.split("\n") == [
        "searched: docker (found by scan; activity not searched: 0 match; times UTC; as of 2016-11-30)",
        "found: 7 messages by 2 authors in 1 conversation, 2016-11-30 to 2016-11-30",
        f"exported: 7 rows as jsonl, {len(raw)} bytes, until 2016-11-30T13:00:00Z, sha256 {digest}",
        f"link: {told.link}",
    ]
    assert told.mime_type == "application/jsonl"
    assert list(told.object)[:2] == ["searched", "found"]


def test_only_the_columns_asked_for_are_written_each_once(desk: Desk, store: LocalExports, tmp_path: Path) -> None:
    for form in FORMATS:
        _, raw = exported(desk, store, '"docker 1"', format=form, fields=("body", "author", "body"))
        assert [{k: plain(v) for k, v in row.items()} for row in rows_of(raw, form, tmp_path)] == [
            {"body": "docker 1", "author": "=cmd()"}
        ]
    assert exported(desk, store, '"docker 1"', format="csv", fields=("author",))[1] == b"author\r\n'=cmd()\r\n"


def test_nothing_is_marked_as_seen(desk: Desk, store: LocalExports) -> None:
    session = desk.search("docker", limit=1, order="newest").object["session"]
    exported(desk, store, "docker")
    left_out = desk.unseen("docker", session=session, limit=50, order="newest").object["left_out"]
    assert left_out == {"messages": 0, "seen": 1}


def test_no_match_makes_no_file(desk: Desk, store: LocalExports, tmp_path: Path) -> None:
    told = begin(ExportRequest(Criteria("zzz", author=("Ann",))), desk.call, store, SETTINGS)
    assert isinstance(told, Answer)
    assert (told.object["rows"], told.object["notes"]) == (0, ["nothing to export: no file was made"])
    assert told.object["hints"]["without"] == {"author": 0, "query": 4}
    assert "note: nothing to export: no file was made" in told.text
    empty = desk_of(tmp_path, corpus_of(tmp_path, [], index=False))
    bare = begin(ExportRequest(Criteria(after="1970")), replace(empty.call, view=empty.view), store, SETTINGS)
    assert isinstance(bare, Answer)
    blank = begin(ExportRequest(Criteria(" ")), replace(empty.call, view=empty.view), store, SETTINGS)
    assert isinstance(blank, Answer)
    assert ("hints" in bare.object, "hints" in blank.object) == (True, False)
    assert not (tmp_path / "exports").exists()


def test_an_export_is_admitted_by_its_exact_rows_before_anything_is_written(
    desk: Desk, store: LocalExports, tmp_path: Path
) -> None:
    told: list[int] = []

    def refuse(rows: int) -> None:
        told.append(rows)
        raise Refused("credit_exhausted", "too many")

    with pytest.raises(Refused):
        begin(ExportRequest(Criteria("docker")), desk.call, store, SETTINGS, refuse)
    assert not (tmp_path / "exports").exists()
    assert isinstance(begin(ExportRequest(Criteria("zzz")), desk.call, store, SETTINGS, refuse), Answer)
    job = begin(ExportRequest(Criteria("docker")), desk.call, store, SETTINGS, told.append)
    assert isinstance(job, Job)
    assert told == [job.hits.found.messages] * 2


def test_an_export_of_nothing_in_particular_is_an_error(desk: Desk, store: LocalExports) -> None:
    with pytest.raises(BadInput) as raised:
        begin(ExportRequest(), desk.call, store, SETTINGS)
    assert (raised.value.code, raised.value.message) == (
        "missing_parameter",
        "export_messages needs a query, a filter or export",
    )


def asked(desk: Desk, store: LocalExports, export_id: str) -> Answer:
    return state_of(ExportRequest(export=export_id), desk.call, store)


def test_a_running_export_is_asked_after_until_it_is_done(desk: Desk, store: LocalExports) -> None:
    job = begun(desk, store, "docker")
    running = job.answer()
    assert {name: running.object[name] for name in ("running", "export", "rows")} == {
        "running": True,
        "export": job.export.export_id,
        "rows": 0,
    }
    assert running.text.split("\n")[-1] == f"running: 0 rows so far; ask again with export={job.export.export_id}"
    state = asked(desk, store, job.export.export_id)
    assert state.object == {"running": True, "export": job.export.export_id, "rows": 0}
    job.run()
    assert asked(desk, store, job.export.export_id).object == {
        name: job.answer().object[name] for name in ("link", "format", "rows", "bytes", "sha256", "expires")
    }


def test_another_process_goes_on_with_a_cancelled_job(desk: Desk, store: LocalExports, tmp_path: Path) -> None:
    job = begun(desk, store, "docker", fields=("body",), filters={"author": ("Ann",)})
    job.cancel()
    job.run()
    assert (files(tmp_path), list((tmp_path / "incoming").iterdir())) == ([], [])
    kept = store.get(job.export.export_id)
    assert kept is not None
    assert kept.state == "running"
    again = resume(kept, desk.call, store, SETTINGS)
    assert again.request == job.request
    again.run()
    assert asked(desk, store, kept.export_id).object["rows"] == 4
    whole = begun(desk, store, "docker")
    assert resume(whole.export, desk.call, store, SETTINGS).request == whole.request


def test_a_job_that_is_failed_from_outside_says_so_and_leaves_no_file(
    desk: Desk, store: LocalExports, tmp_path: Path
) -> None:
    job = begun(desk, store, "docker")
    job.fail()
    job.run()
    job.fail()
    with pytest.raises(Unavailable) as caught:
        asked(desk, store, job.export.export_id)
    assert (caught.value.code, files(tmp_path), list((tmp_path / "incoming").iterdir())) == ("export_failed", [], [])


def test_what_has_ended_stays_as_it_ended(desk: Desk, store: LocalExports) -> None:
    done, _ = exported(desk, store, "docker")
    done.fail()
    assert asked(desk, store, done.export.export_id).object["rows"] == 7
    handed_over, revoked = begun(desk, store, "docker"), begun(desk, store, "docker")
    handed_over.cancel()
    handed_over.fail()
    assert asked(desk, store, handed_over.export.export_id).object["running"] is True
    store.revoke(revoked.export.export_id)
    revoked.fail()
    assert store.get(revoked.export.export_id) is None


def test_a_job_stopped_after_its_last_row_does_not_make_its_file_readable(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopping(LocalExports):
        def sink(self, export: Export) -> Any:
            made = super().sink(export)
            write = made.write

            def last_piece(data: bytes) -> None:
                write(data)
                job.fail()

            monkeypatch.setattr(made, "write", last_piece)
            return made

    job = begun(desk, Stopping(tmp_path), "docker")
    job.run()
    kept = job.store.get(job.export.export_id)
    assert kept is not None
    assert (kept.state, files(tmp_path)) == ("failed", [])


def test_progress_is_noted_on_the_way(desk: Desk, store: LocalExports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.export._PROGRESS_ROWS", 3)
    noted: list[tuple[str, int]] = []

    class Noting(LocalExports):
        def put(self, export: Export) -> None:
            noted.append((export.state, export.rows))
            super().put(export)

    exported(desk, Noting(Path(store.link(begun(desk, store, "docker").export)).parents[3]), "docker")
    assert noted == [("running", 0), ("running", 3), ("running", 6), ("done", 7)]


def test_other_callers_unknown_expired_and_revoked_exports_are_one_same_error(desk: Desk, store: LocalExports) -> None:
    job, _ = exported(desk, store, "docker")
    export_id = job.export.export_id
    other, late = replace(desk, caller=Caller("bo")), replace(desk, now=NOON + HOUR)
    for who, what in ((other, export_id), (late, export_id), (desk, "invented"), (desk, "")):
        with pytest.raises(NotFound) as raised:
            asked(who, store, what)
        assert raised.value.code == "unknown_export"
    store.revoke(export_id)
    with pytest.raises(NotFound):
        asked(desk, store, export_id)


def test_a_revoked_export_is_not_written_to_its_end(desk: Desk, store: LocalExports, tmp_path: Path) -> None:
    job = begun(desk, store, "docker")
    assert sight_of(job.export) == desk.view.sight
    store.revoke(job.export.export_id)
    job.run()
    assert (store.get(job.export.export_id), files(tmp_path)) == (None, [])
    with pytest.raises(Unavailable):
        sight_of(replace(job.export, request=""))


def test_a_new_export_sweeps_what_has_expired(desk: Desk, store: LocalExports, tmp_path: Path) -> None:
    exported(desk, store, "docker")
    assert len(files(tmp_path)) == 1
    later = replace(desk, now=NOON + HOUR)
    job, _ = exported(later, store, "docker")
    assert files(tmp_path) == [Path(store.link(job.export))]


class Full(LocalExports):
    """A store without room for a file."""

    def sink(self, export: Export) -> Any:
        raise Unavailable("store_unreachable", f"no room for {export.format}")


@pytest.mark.parametrize("cause", ["store", "snapshot"])
def test_a_failed_export_says_so_and_leaves_no_file(
    desk: Desk, store: LocalExports, tmp_path: Path, cause: str
) -> None:
    failing = Full(tmp_path) if cause == "store" else store
    job = begun(desk, failing, "docker")
    if cause == "snapshot":
        other = corpus_of(tmp_path, [said(n, "rocker") for n in range(7)], index=False)
        job.hits.view.corpus.database, job.hits.view.corpus._prefix = other.database, other._prefix
    with pytest.raises((Unavailable, BrokenSnapshot)):
        job.run()
    assert files(tmp_path) == []
    with pytest.raises(Unavailable) as raised:
        asked(desk, store, job.export.export_id)
    assert raised.value.code == "export_failed"


def test_notes_of_the_query_come_with_the_answer(desk: Desk, store: LocalExports) -> None:
    job, _ = exported(desk, store, "docker*")
    assert len(job.answer().object["notes"]) == 1
    assert job.answer().text.split("\n")[2].startswith("note: ")


def row(body: str, **changes: Any) -> Message:
    plain_ = Message(
        0, "c:1", "c", "c", "c:1", NOON, "u", "u", "unknown", None, "message", None, "", body, None, None, None
    )
    return replace(plain_, **changes)


@pytest.mark.parametrize(
    ("body", "cell"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a=b", "a=b"),
        *((f"{first}cmd", f"'{first}cmd") for first in "=+-@\t\r\n\0\x1b＝＋－＠"),
        ("  =1+1", "'  =1+1"),
        ("\u00a0=1", "'\u00a0=1"),
        ("' =1", "' =1"),
        ('say "x", y', 'say "x", y'),
        ("line\r\nline", "line\r\nline"),
    ],
)
def test_a_cell_that_a_spreadsheet_would_execute_is_made_inert(body: str, cell: str) -> None:
    raw = b"".join(encoded([row(body)], ["body"], "csv", SETTINGS)).decode()
    assert (
        list(csv.reader(io.StringIO(raw, newline=""))) == [["body"], [cell] if cell else []] or raw == 'body\r\n""\r\n'
    )


@pytest.mark.parametrize("form", FORMATS)
def test_a_long_file_comes_in_pieces(form: str) -> None:
    chance = random.Random(0)
    bodies = ["".join(map(chr, chance.choices(range(0x4E00, 0x9FFF), k=3_000))) for _ in range(200)]

    def messages() -> Iterator[Message]:
        return (row(body) for body in bodies)

    pieces = list(encoded(messages(), ["body"], form, SETTINGS))
    assert len(pieces) > 1
    assert all(0 < len(piece) < 1_000_000 for piece in pieces)
    whole = b"".join(pieces)
    if form != "parquet":
        assert whole.decode().count("\n") == 200 + (form == "csv")
    exact = list(encoded([row("x" * ((1 << 18) - 12))], ["body"], "jsonl", SETTINGS))
    assert [len(piece) for piece in exact] == [1 << 18]


def test_parquet_takes_the_longest_line(tmp_path: Path) -> None:
    raw = b"".join(
        encoded([row("ж" * 3_000_000), row("x", edited_at=-62_135_596_800_000_000)], list(COLUMNS), "parquet", SETTINGS)
    )
    told = rows_of(raw, "parquet", tmp_path)
    assert (len(told[0]["body"]), told[1]["edited_at"].year) == (3_000_000, 1)


def test_an_export_that_does_not_end_in_its_time_has_failed(desk: Desk, store: LocalExports) -> None:
    job = begun(desk, store, "docker")
    seconds = desk.view.limits.export_run_seconds
    assert asked(replace(desk, now=NOON + seconds * 1_000_000), store, job.export.export_id).object["running"] is True
    with pytest.raises(Unavailable) as raised:
        asked(replace(desk, now=NOON + seconds * 1_000_000 + 1), store, job.export.export_id)
    assert raised.value.code == "export_failed"
