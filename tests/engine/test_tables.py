"""Tables cut on demand: what goes is counted."""

from pathlib import Path

from engine.tables import Row, Table
from tests.engine.corpora import corpus_of, desk_of, said


def table(*, in_order: bool) -> Table:
    rows = tuple(Row((f"name number {n}",), 9 - n, 10, 1, (n,)) for n in range(5))
    return Table(("author",), ("a long query",), rows, in_order)


def test_the_largest_rows_stay_and_of_a_time_the_latest() -> None:
    cut = table(in_order=False).cut(2, 8)
    assert cut.to_object() == {
        "columns": ["author", "messages", "all", "authors", "a long …"],
        "rows": [["name nu…", 9, 10, 1, 0], ["name nu… (2)", 8, 10, 1, 1]],
        "rest": {"values": 3, "messages": 18},
    }
    assert cut.lines()[-1] == "3 more with 18"
    latest = table(in_order=True).cut(2, 80)
    assert [row.labels for row in latest.rows] == [("name number 3",), ("name number 4",)]
    assert latest.rest == (3, 24)
    assert latest.row_texts() == ["name number 3 6/10 vs 3", "name number 4 5/10 vs 4"]
    assert latest.plain_rows() == [["name number 3", 6, 10, 3], ["name number 4", 5, 10, 4]]
    assert table(in_order=False).cut(9, 80).rest == (0, 0)


def test_forty_rows_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    messages = [said(n * 1_440, "x", author=f"P{n // 2:02}") for n in range(100)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    people = desk.count("x", by=("author",)).object["table"]
    assert (len(people["rows"]), people["rest"]) == (40, {"values": 10, "messages": 20})
    days = desk.count("x", by=("day",)).object["table"]["rows"]
    assert (len(days), days[-1][0]) == (40, "2017-03-09")
