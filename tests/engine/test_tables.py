"""Tables cut on demand: what goes is counted, so that rows and rest add up to all matches."""

import random
from datetime import UTC
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from engine.choices import DIMENSIONS
from engine.facets import dimension
from engine.hits import find
from engine.model import SourceMessage
from engine.query.bind import bind
from engine.requests import Criteria
from engine.tables import Row, Table, tabulate
from tests.engine.corpora import MINUTE, corpus_of, desk_of, naive_hits, random_messages, said

DAY = 1_440


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
    assert (
        latest.line() == "by author, matches/all: name number 3 6/10 vs 3, name number 4 5/10 vs 4, 3 earlier with 24"
    )
    assert latest.over_time() == {
        "unit": "author",
        "rows": [["name number 3", 6, 10, 3], ["name number 4", 5, 10, 4]],
        "rest": {"values": 3, "messages": 24},
    }
    assert table(in_order=False).cut(9, 80).rest == (0, 0)
    assert Table(("month",), (), (), in_order=True).cut(2, 80).rows == ()


def test_a_day_was_cut_where_a_name_would_be() -> None:
    days = Table(("day",), (), (Row(("2016-11-30",), 1, 1, 1, ()),), in_order=True)
    assert days.cut(1, 8).rows == days.rows


def test_forty_rows_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    messages = [said(n * DAY, "x", author=f"P{n // 2:02}") for n in range(100)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    people = desk.count("x", by=("author",)).object["table"]
    assert (len(people["rows"]), people["rest"]) == (40, {"values": 10, "messages": 20})


def test_days_before_the_latest_forty_were_in_no_rest(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, corpus_of(tmp_path, [said(n * DAY, "x") for n in range(100)], index=False))
    told = desk.count("x", by=("day",))
    days = told.object["table"]
    assert (len(days["rows"]), days["rows"][-1][0], days["rest"]) == (40, "2017-03-09", {"values": 60, "messages": 60})
    assert told.text.endswith("\n60 earlier with 60")
    by_kind = desk.count("x", by=("kind", "day")).object["table"]
    assert by_kind["rows"][0] == ["message", "before 2017-01-29", 60, 60, 1]
    assert "60 earlier with" not in desk.count("x", by=("day",), after="2017-01-29").text


def test_years_before_those_shown_over_time_were_in_no_rest(tmp_path: Path) -> None:
    messages = [said(n, "x", sent_at=n * 366 * DAY * 60_000_000) for n in range(30)]
    told = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False)).count("x")
    over_time = told.object["over_time"]
    assert (over_time["unit"], len(over_time["rows"])) == ("year", 24)
    assert over_time["rest"] == {"values": 6, "messages": 6}
    assert "1999 1/1, 6 earlier with 6\n" in told.text


def test_a_table_by_time_and_another_dimension_was_cut_inside_a_bucket(tmp_path: Path) -> None:
    messages = [said(n * DAY, "x", author=f"P{n % 9}", native_id=f"{n}-{k}") for n in range(9) for k in range(1)]
    messages += [said(9 * DAY + n, "x", author=f"P{n:02}", native_id=f"late{n}") for n in range(36)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    told = desk.count("x", by=("day", "author")).object["table"]
    assert [row[0] for row in told["rows"]] == ["2016-12-05", "2016-12-06", "2016-12-07", "2016-12-08"] + 36 * [
        "2016-12-09"
    ]
    assert told["rest"] == {"values": 5, "messages": 5}
    crowd = [said(n, "x", author=f"P{n // 2:02}") for n in range(100)]
    told = desk_of(tmp_path, corpus_of(tmp_path, [*crowd, said(101, "x", author="P49")], index=False)).count(
        "x", by=("day", "author")
    )
    rows = told.object["table"]["rows"]
    assert (rows[0], len(rows)) == (["2016-11-30", "P49", 3, 3, 1], 40)
    assert told.object["table"]["rest"] == {"values": 10, "messages": 20}
    assert told.text.endswith("\n10 more with 20")


def test_messages_without_a_value_were_counted_nowhere(tmp_path: Path) -> None:
    messages = [said(1, "x", status="open"), said(2, "x"), said(3, "x", to_role="client")]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    told = desk.count("x", by=("status", "to_role"))
    assert told.object["table"]["rows"] == [
        ["open", None, 1, 1, 1],
        [None, "client", 1, 1, 1],
        [None, None, 1, 1, 1],
    ]
    assert told.text.split("\n")[-3:] == [
        "- open, (none) 1/1 (1)",
        "- (none), client 1/1 (1)",
        "- (none), (none) 1/1 (1)",
    ]


def wide_messages(chance: random.Random, days: int) -> list[SourceMessage]:
    """Random messages, each so many days after the one before."""
    return [
        SourceMessage(
            **{name: getattr(m, name) for name in m.__slots__} | {"sent_at": m.sent_at + n * days * DAY * MINUTE}
        )
        for n, m in enumerate(random_messages(chance, 90))
    ]


def total(told: dict[str, Any], place: int) -> int:
    shown, left = sum(row[place] for row in told["rows"]), told.get("rest", {"messages": 0})["messages"]
    return int(shown + left)


@pytest.mark.parametrize("days", [0, 1, 10, 400])
def test_rows_and_rest_add_up_to_what_was_found(tmp_path: Path, days: int) -> None:
    messages = wide_messages(random.Random(days), days)
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    told = desk.count("client OR x", compare=("cafe",)).object
    assert total(told["over_time"], 1) == told["found"]["messages"]
    for query in ("", "client OR x"):
        hits, other = (find(desk.view, bind(Criteria(text), desk.view, UTC)) for text in (query, "cafe"))
        of = {name: dimension(name, desk.view, hits.query, UTC) for name in DIMENSIONS}
        for by in [(name,) for name in DIMENSIONS] + [*permutations(DIMENSIONS, 2)]:
            table = tabulate([of[name] for name in by], hits, [other])
            for shown in (table, table.cut(7, 8)):
                assert total(shown.to_object(), len(by)) == hits.found.messages == len(naive_hits(messages, query))
