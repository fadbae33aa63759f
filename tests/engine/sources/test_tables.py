"""Tables as a source: every format gives the same messages, and what is broken is named and counted.

One file, since every test speaks of the same reader and its few builders.
"""

import csv
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.model import Problem, SourceMessage, SourceReport
from engine.sources.roles import RoleRule
from engine.sources.table_times import instant_of
from engine.sources.tables import FIELDS, TableSource
from tests.depth import depth

FORMATS = ("jsonl", "csv", "parquet")
NEW_YEAR = 1_483_228_800_000_000
"""2017-01-01T00:00:00Z."""

COLUMNS = {
    "conversation": "room",
    "native_id": "nr",
    "sent_at": "when",
    "author": "who",
    "body": 'the "text", here',
    "to_role": "to",
    "edited_at": "changed",
}

ROWS: list[dict[str, str]] = [
    {
        "room": "#billing",
        "nr": "1475354827.000100",
        "when": "2017-01-01T00:00:00Z",
        "who": "Ann",
        'the "text", here': 'one, "two"\nthree',
        "to": "*",
        "changed": "2017-01-01T00:00:01Z",
        "extra/~key": "7",
    },
    {
        "room": "#billing",
        "nr": "1475354827.000200",
        "when": "1483228800",
        "who": "Борис",
        'the "text", here': "日本語 🙂",
        "to": "",
        "changed": "",
        "extra/~key": "",
    },
]


def write(path: Path, rows: Iterable[Mapping[str, str]]) -> Path:
    """The rows as a file in the format of its suffix."""
    listed = list(rows)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in listed), "utf-8")
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(listed[0]))
            writer.writeheader()
            writer.writerows(listed)
    else:
        names = list(listed[0])
        quoted = ", ".join('"' + n.replace('"', '""') + '" VARCHAR' for n in names)
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"CREATE TABLE t ({quoted})")
            marks = ", ".join("?" for _ in names)
            connection.executemany(f"INSERT INTO t VALUES ({marks})", [[r[n] or None for n in names] for r in listed])
            connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    return path


def source(location: Path, columns: Mapping[str, str] = COLUMNS, **more: object) -> TableSource:
    suffix = location.suffix.removeprefix(".")
    values: dict[str, object] = {"name": "rows", "format": suffix, "location": str(location), "threads": 1}
    return TableSource(columns=columns, **(values | more))  # type: ignore[arg-type] # keyword values by name


def read(table: TableSource) -> tuple[list[SourceMessage], SourceReport]:
    report = SourceReport()
    return list(table.messages(report)), report


def told(report: SourceReport) -> tuple[int, int, dict[str, int], list[tuple[str, str]]]:
    return report.read, report.yielded, dict(report.skipped), [(p.where, p.why) for p in report.problems]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_messages(tmp_path: Path, form: str) -> None:
    messages, report = read(source(write(tmp_path / f"a[1]*.{form}", ROWS), keep_unmapped=True))
    first = SourceMessage(
        conversation_id="#billing",
        conversation="billing",
        native_id="1475354827.000100",
        sent_at=NEW_YEAR,
        author_id="Ann",
        author="Ann",
        body='one, "two"\nthree',
        to_role="*",
        edited_at=NEW_YEAR + 1_000_000,
        attributes='{"extra/~key":"7"}',
    )
    second = SourceMessage(
        conversation_id="#billing",
        conversation="billing",
        native_id="1475354827.000200",
        sent_at=NEW_YEAR,
        author_id="Борис",
        author="Борис",
        body="日本語 🙂",
    )
    assert messages == [first, second]
    assert told(report) == (2, 2, {}, [])


@pytest.mark.parametrize("form", FORMATS)
def test_other_columns_are_left_out_unless_asked_for(tmp_path: Path, form: str) -> None:
    messages, _ = read(source(write(tmp_path / f"rows.{form}", ROWS)))
    assert [m.attributes for m in messages] == [None, None]


def test_own_names_need_no_mapping_and_whole_ids_are_taken_apart(tmp_path: Path) -> None:
    row = {
        "message_id": "C1:10.5",
        "thread_id": "C1:10.1",
        "conversation_id": "C1",
        "conversation": "support",
        "sent_at": "2017-01-01 01:00:00+01:00",
        "author_id": "U1",
        "author": "Ann",
        "from_role": "client",
        "kind": "ticket",
        "status": "open",
        "topic": "Bill",
        "body": "hello",
        "link": "https://example.com/1",
        "attributes": '{"a": [1]}',
    }
    (message,), _ = read(source(write(tmp_path / "rows.jsonl", [row]), columns={"status": ""}))
    assert message == SourceMessage(
        conversation_id="C1",
        conversation="support",
        native_id="10.5",
        sent_at=NEW_YEAR,
        author_id="U1",
        author="Ann",
        body="hello",
        thread_native_id="10.1",
        from_role="client",
        kind="ticket",
        topic="Bill",
        link="https://example.com/1",
        attributes='{"a":[1]}',
    )
    assert (message.message_id, message.thread_id) == ("C1:10.5", "C1:10.1")


def test_a_column_mapped_to_one_field_is_not_taken_for_another(tmp_path: Path) -> None:
    row = {"conversation": "a", "sent_at": "2017-01-01", "author": "x", "body": "long", "topic": "short"}
    (message,), _ = read(source(write(tmp_path / "rows.jsonl", [row]), columns={"body": "topic"}))
    assert (message.body, message.topic) == ("short", "")


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    path = tmp_path / "typed.parquet"
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'Asia/Tokyo'")
        connection.execute(
            "COPY (SELECT 7 AS conversation, 12345678901234567890::UBIGINT AS native_id, "
            "TIMESTAMP '2017-01-01 01:00:00.000005' AS sent_at, 'Ann'::BLOB AS author, 'hi' AS body, "
            "TIMESTAMPTZ '2017-01-01 09:00:00+09' AS edited_at, {'x': [1, 2]} AS extra, ['a'] AS status) "
            f"TO '{path}' (FORMAT parquet)"
        )
    (message,), _ = read(source(path, columns={}, zone=ZoneInfo("Europe/Vienna"), keep_unmapped=True))
    assert message == SourceMessage(
        conversation_id="7",
        conversation="7",
        native_id="12345678901234567890",
        sent_at=NEW_YEAR + 5,
        author_id="Ann",
        author="Ann",
        body="hi",
        status='["a"]',
        edited_at=NEW_YEAR,
        attributes='{"extra":{"x":[1,2]}}',
    )


def test_roles_come_from_the_column_else_from_the_rules(tmp_path: Path) -> None:
    base = {"conversation": "a", "sent_at": "2017-01-01", "body": "x"}
    rows = [
        base | {"author": "Ann", "email": "ann@mail.partner.example", "from_role": "", "native_id": "1"},
        base | {"author": "Bob", "email": "", "from_role": "vendor", "native_id": "2"},
        base | {"author": "Cid", "email": "", "from_role": "", "native_id": "3"},
    ]
    rules = {"client": RoleRule(email_domain=("partner.example",))}
    messages, _ = read(source(write(tmp_path / "r.csv", rows), columns={}, roles=rules))
    assert [(m.author, m.from_role) for m in messages] == [
        ("Ann", "client"),
        ("Bob", "vendor"),
        ("Cid", "unknown"),
    ]
    assert "partner.example" not in repr(messages)


def test_rows_without_an_id_get_a_stable_one_and_equal_rows_are_one_message(tmp_path: Path) -> None:
    row = {"conversation": "a", "sent_at": "2017-01-01", "author": "Ann", "body": "x"}
    rows = [row, row, row | {"body": "y"}]
    first, report = read(source(write(tmp_path / "r.jsonl", rows), columns={}))
    again, _ = read(source(write(tmp_path / "r.csv", rows), columns={}))
    assert first == again
    assert [m.body for m in first] == ["x", "y"]
    assert len({m.native_id for m in first}) == 2
    assert told(report) == (
        3,
        2,
        {"duplicate": 1},
        [("r.jsonl row 2", "repeats the id of an earlier row")],
    )


def test_an_id_that_could_not_stand_in_a_line_is_replaced_by_its_digest(tmp_path: Path) -> None:
    row = {"conversation": "a\nb", "native_id": "x" * 201, "thread_native_id": "x" * 201}
    more = {"sent_at": "2017-01-01", "author": "Ann", "body": "x"}
    (message,), _ = read(source(write(tmp_path / "r.jsonl", [row | more]), columns={}))
    assert message.message_id.isprintable()
    assert len(message.message_id) == 65
    assert message.thread_id == message.message_id


def test_broken_lines_of_jsonl_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    good = {"conversation": "a", "native_id": "1", "sent_at": "2017-01-01", "author": "Ann", "body": "x"}
    lines = [
        json.dumps(good),
        '{"conversation": "a", ',
        "[1]",
        json.dumps(good | {"native_id": "2", "sent_at": "56310778"}),
        json.dumps(good | {"native_id": "3", "sent_at": None}),
        json.dumps(good | {"native_id": "4", "conversation": " "}),
        json.dumps(good | {"native_id": "5", "edited_at": "soon", "author": None, "body": None}),
    ]
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    messages, report = read(source(path, columns={}))
    assert [(m.native_id, m.author, m.body, m.edited_at) for m in messages] == [
        ("1", "Ann", "x", None),
        ("5", "", "", None),
    ]
    assert told(report) == (
        7,
        2,
        {"broken row": 2, "no usable time": 2, "no conversation": 1},
        [
            ("r.jsonl row 2", "not JSON"),
            ("r.jsonl row 3", "not a JSON object"),
            ("r.jsonl row 4", "the time is neither an ISO time nor a number"),
            ("r.jsonl row 5", "has no time"),
            ("r.jsonl row 6", "has no conversation"),
            ("r.jsonl row 7", "kept without its last edit: the time is neither an ISO time nor a number"),
        ],
    )


def test_broken_lines_of_csv_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(
        b"\xef\xbb\xbfconversation;native_id;sent_at;author;body;body\n"
        b"a;1;2017-01-01;Ann;first, of two;second\n"
        b"short\n"
        b"a;2;2017-01-01;Ann;bad \xff byte;\n"
        b'a;3;2017-01-01;Ann;"two\nlines";\n'
    )
    messages, report = read(source(path, columns={}))
    assert [(m.native_id, m.body) for m in messages] == [("1", "first, of two"), ("3", "two\nlines")]
    assert told(report) == (
        4,
        2,
        {"broken row": 2},
        [("r.csv line 3", "missing columns"), ("r.csv line 4", "invalid encoding")],
    )


def test_a_folder_and_a_glob_read_their_files_in_order_and_name_what_is_broken(tmp_path: Path) -> None:
    row = {"conversation": "a", "sent_at": "2017-01-01", "author": "Ann", "body": "x"}
    (tmp_path / "2016").mkdir()
    write(tmp_path / "2016" / "b.jsonl", [row | {"native_id": "2"}])
    write(tmp_path / "2016" / ".hidden.jsonl", [row | {"native_id": "9"}])
    with gzip.open(tmp_path / "2016" / "c.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.write(json.dumps(row | {"native_id": "3"}))
    (tmp_path / "2016" / "d.jsonl.gz").write_bytes(b"not gzip")
    write(tmp_path / "2016" / "e.jsonl", [{"conversation": "a", "author": "Ann", "body": "x"}])
    (tmp_path / "empty.jsonl").write_text("", "utf-8")
    (tmp_path / "notes.txt").write_text("not a table", "utf-8")
    expected = {"b": "2", "c": "3"}
    folder = TableSource("rows", "jsonl", str(tmp_path))
    globbed = TableSource("rows", "jsonl", str(tmp_path / "2*" / "*.jsonl*"))
    for table, prefix in ((folder, "2016/"), (globbed, "2016/")):
        messages, report = read(table)
        assert [m.native_id for m in messages] == list(expected.values())
        assert report.problems == [
            Problem(f"{prefix}d.jsonl.gz", "cannot be read (IOException)"),
            Problem(f"{prefix}e.jsonl", "has no column for sent_at"),
        ]
        assert str(tmp_path) not in repr(report)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("r.csv", b"", "has no header"),
        ("r.csv", b"a,\xff\n", "is not UTF-8"),
        ("r.csv.gz", b"junk", "cannot be read (BadGzipFile)"),
        ("r.parquet", b"junk", "cannot be read (InvalidInputException)"),
        ("r.jsonl", b"junk\n", None),
    ],
)
def test_a_file_of_another_format_is_an_error_that_names_no_path(
    tmp_path: Path, name: str, content: bytes, why: str | None
) -> None:
    (tmp_path / name).write_bytes(content)
    report = SourceReport()
    table = TableSource("rows", name.split(".")[1], str(tmp_path / name))
    with pytest.raises(BadInput) as caught:
        list(table.messages(report))
    assert caught.value.to_text() == (
        "source_unreadable: source 'rows' has no file that can be read; check its format and location"
    )
    assert report.problems == ([Problem(name, why)] if why else [])


def test_a_file_that_breaks_off_gives_what_came_before(tmp_path: Path) -> None:
    row = {"conversation": "a", "sent_at": "2017-01-01", "author": "Ann"}
    seeded = random.Random(1)
    rows = [row | {"native_id": str(n), "body": seeded.randbytes(2_000).hex()} for n in range(3_000)]
    whole = write(tmp_path / "r.csv", rows).read_bytes()
    cut = tmp_path / "r.csv.gz"
    cut.write_bytes(gzip.compress(whole, 1)[:-100_000])
    report = SourceReport()
    messages = list(TableSource("rows", "csv", str(cut)).messages(report))
    assert 2_000 < len(messages) < 3_000
    assert [m.native_id for m in messages] == [str(n) for n in range(len(messages))]
    assert report.problems == [Problem("r.csv.gz", "cannot be read to its end (EOFError)")]


def test_an_attributes_column_may_hold_anything(tmp_path: Path) -> None:
    row = {"conversation": "a", "sent_at": "2017-01-01", "author": "Ann", "body": "x"}
    rows = [row | {"native_id": str(n), "attributes": text} for n, text in enumerate(["{}", "[1]", "{oops"])]
    messages, _ = read(source(write(tmp_path / "r.csv", rows), columns={}))
    assert [m.attributes for m in messages] == [None, '{"attributes":[1]}', '{"attributes":"{oops"}']


def test_a_file_that_cannot_be_read_at_all_has_no_digest(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").symlink_to("/proc/self/mem")
    with pytest.raises(BadInput, match="has no file that can be read"):
        TableSource("rows", "jsonl", str(tmp_path)).digest()


UNKNOWN_COLUMN = (
    "unknown_column: no column is called 'txt', mapped to body; "
    "use one of nearest, with the number of files that have it (nearest: 'text' 1)"
)
MISSING_COLUMN = (
    "missing_column: no column holds conversation_id or conversation; "
    "name one under [sources.columns] (nearest: 'text' 1, 'when' 1, 'who' 1)"
)


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"bodi": "who"}, "unknown_field: a message has no field 'bodi'; use body"),
        ({"body": "txt"}, UNKNOWN_COLUMN),
        ({"body": "text", "sent_at": "when", "author": "who"}, MISSING_COLUMN),
    ],
)
@pytest.mark.parametrize("form", FORMATS)
def test_a_mapping_that_does_not_fit_names_the_nearest_columns(
    tmp_path: Path, form: str, columns: dict[str, str], error: str
) -> None:
    path = write(tmp_path / f"r.{form}", [{"when": "2017", "who": "Ann", "text": "x"}])
    with pytest.raises(BadInput) as caught:
        read(source(path, columns=columns))
    assert caught.value.to_text() == error


def test_a_field_like_no_other_gets_the_list_of_fields(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", [{"when": "2017"}])
    with pytest.raises(BadInput, match="has no field 'zzzz'") as caught:
        read(source(path, columns={"zzzz": "when"}))
    assert caught.value.next_step.startswith("the fields are conversation_id, conversation, ")


@pytest.mark.parametrize("location", ["missing.jsonl", "*.jsonl", "."])
def test_a_location_without_files_is_an_error(tmp_path: Path, location: str) -> None:
    table = TableSource("rows", "jsonl", str(tmp_path / location))
    for call in (table.digest, lambda: list(table.messages(SourceReport()))):
        with pytest.raises(BadInput, match=r"^no jsonl file at ") as caught:
            call()
        assert caught.value.code == "source_unreadable"


def test_the_digest_changes_with_content_names_and_mapping_only(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", ROWS)
    digest = source(path).digest()
    assert digest == source(path, name="other").digest()
    moved = path.rename(tmp_path / "s.jsonl")
    others = [
        source(moved),
        source(path := write(tmp_path / "r.jsonl", ROWS), keep_unmapped=True),
        source(path, columns={}),
        source(path, zone=ZoneInfo("Europe/Vienna")),
        source(path, roles={"client": RoleRule(user=("U1",))}),
    ]
    assert len({digest, *(table.digest() for table in others)}) == 6
    write(path, ROWS[:1])
    assert source(path).digest() != digest


def test_values_that_look_like_sql_or_paths_are_only_values(tmp_path: Path) -> None:
    column = "x'); DROP TABLE t; --"
    rows = [{column: "'; ATTACH '/etc/passwd'; --", "c": "a", "at": "2017-01-01", "who": "$.a"}]
    columns = {"body": column, "conversation": "c", "sent_at": "at", "author": "who"}
    for form in FORMATS:
        (message,), _ = read(source(write(tmp_path / f"r.{form}", rows), columns=columns))
        assert (message.body, message.author) == ("'; ATTACH '/etc/passwd'; --", "$.a")


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2017-01-01", NEW_YEAR - 3_600_000_000),
        ("20170101", NEW_YEAR - 3_600_000_000),
        ("2017-01-01T00:00", NEW_YEAR - 3_600_000_000),
        ("2017-01-01 00:00:00 UTC", NEW_YEAR),
        (" 2017-01-01T00:00:00.1234567Z ", NEW_YEAR + 123_456),
        ("2017-01-01T02:00:00+0200", NEW_YEAR),
        ("2017-07-01T02:00:00", NEW_YEAR + 181 * 86_400_000_000),
        ("1483228800", NEW_YEAR),
        ("1483228800.000100", NEW_YEAR + 100),
        ("1483228800000", NEW_YEAR),
        ("1483228800000.0", NEW_YEAR),
        ("1.4832288e12", NEW_YEAR),
        ("1483228800000001", NEW_YEAR + 1),
    ],
)
def test_times_are_read_exactly(text: str, instant: int) -> None:
    assert instant_of(text, ZoneInfo("Europe/Vienna")) == instant


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is neither an ISO time nor a number"),
        ("yesterday", "is neither an ISO time nor a number"),
        ("2017-13-01", "is neither an ISO time nor a number"),
        ("1969-12-31T00:00:00Z", "is not between 1970 and 2100"),
        ("56310778-01-01", "is neither an ISO time nor a number"),
        ("9999-12-31T23:59:59-01:00", "is not between 1970 and 2100"),
        ("0", "is no plausible time in seconds, milliseconds or microseconds since 1970"),
        ("-5", "is no plausible time in seconds, milliseconds or microseconds since 1970"),
        ("4102444800", "is no plausible time in seconds, milliseconds or microseconds since 1970"),
        ("1483228800000000000", "is no plausible time in seconds, milliseconds or microseconds since 1970"),
        ("1e999999999", "is no plausible time in seconds, milliseconds or microseconds since 1970"),
        ("NaN", "is no plausible time in seconds, milliseconds or microseconds since 1970"),
    ],
)
def test_absurd_times_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        instant_of(text, UTC)


@given(st.integers(100_000_000_000_000, 4_102_444_799_999_999))
@settings(max_examples=depth(200, 60), deadline=None, derandomize=True)
def test_a_time_is_the_same_in_every_unit_and_form(instant: int) -> None:
    whole = instant - instant % 1_000_000
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)
    assert instant_of(str(instant), UTC) == instant
    assert instant_of(f"{instant // 1_000_000}.{instant % 1_000_000:06d}", UTC) == instant
    assert instant_of(str(whole // 1_000), UTC) == whole
    assert instant_of(str(whole // 1_000_000), UTC) == whole
    assert instant_of(at.isoformat(), UTC) == instant


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


@given(st.lists(TEXTS, min_size=1, max_size=8))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_texts_survive_every_format(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("texts")
    rows = [
        {"conversation": "a", "native_id": str(n), "sent_at": "2017-01-01", "author": "x", "body": text}
        for n, text in enumerate(texts)
    ]
    for form in FORMATS:
        messages, report = read(source(write(folder / f"r.{form}", rows), columns={}))
        assert Counter(m.body for m in messages) == Counter(texts), form
        assert report.problem_count == 0


def test_the_page_about_tables_names_every_field() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tables.md").read_text("utf-8")
    assert [name for name in FIELDS if f"`{name}`" not in page] == []


def test_no_more_problems_are_named_than_the_report_has_room_for() -> None:
    report = SourceReport(max_problems=1)
    for number in range(3):
        report.problem(f"line {number}", "broken")
    assert ([problem.where for problem in report.problems], report.problem_count) == (["line 0"], 3)
