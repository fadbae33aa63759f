"""Counts are exact: each number of `count_messages` equals a recount in plain Python."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from engine.limits import Limits, PageBudget
from engine.model import ACTIVITY, TOMBSTONE, SourceMessage
from engine.pack import fits
from engine.times import iso
from tests.engine.corpora import Desk, corpus_of, desk_of, naive_hits, random_messages, random_query, said

FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"from_role": ("client", "vendor")},
    {"to_role": ("*",)},
    {"author": ("u1", "u2")},
    {"conversation": ("c1",)},
    {"kind": (ACTIVITY, "bot")},
    {"status": ("open",)},
    {"min_words": 4},
)


def found(messages: list[SourceMessage]) -> dict[str, Any]:
    """`found`, recounted."""
    out: dict[str, Any] = {
        "messages": len(messages),
        "threads": len({m.thread_id for m in messages}),
        "conversations": len({m.conversation_id for m in messages}),
        "authors": len({m.author_id for m in messages}),
    }
    if messages:
        out |= {"first": iso(min(m.sent_at for m in messages)), "last": iso(max(m.sent_at for m in messages))}
    return out


def day_of(m: SourceMessage) -> str:
    return iso(m.sent_at)[:10]


@pytest.mark.parametrize("seed", range(12))
def test_every_count_equals_a_recount(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = random_messages(chance, 80)
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, shard_rows=chance.choice((9, 1_000)), index=False))
    for _ in range(4):
        query, other, filters = random_query(chance), random_query(chance), chance.choice(FILTERS)
        filters = filters if naive_hits(messages, **filters) else {}
        hits, every = naive_hits(messages, query, **filters), naive_hits(messages, **filters)
        told = desk.count(query, compare=(other,), **filters).object
        assert told["found"] == found(hits)
        assert told["compare"][0] | {"query": ""} == {"query": "", **found(naive_hits(messages, other, **filters))}
        hidden = naive_hits(messages, query, **{**filters, "kind": (ACTIVITY,)})
        assert told["searched"].get("not_searched") == (None if "kind" in filters else {"activity": len(hidden)})
        rows = told["over_time"]["rows"] if "over_time" in told else []
        assert len(rows) <= 24
        if told.get("over_time", {}).get("unit") == "day":
            assert {label: (n, of) for label, n, of, _ in rows if of} == {
                label: (Counter(map(day_of, hits))[label], of) for label, of in Counter(map(day_of, every)).items()
            }
        assert [sum(row[1] for row in rows), sum(row[2] for row in rows)] == [len(hits), len(every)]
        top = told.get("top", {})
        for name, counts in top.items():
            left = told.get("rest", {}).get(name, {"messages": 0})["messages"]
            assert sum(counts.values()) + left == len(hits)
        assert (
            Counter(top.get("author", {}).values())
            == (Counter(Counter(m.author_id for m in hits).values()) if "author" not in filters else Counter())
            or "author" in filters
        )
        if "kind" in top:
            assert top["kind"] == Counter(m.kind for m in hits)


ONE: dict[str, Callable[[SourceMessage], str | None]] = {
    "author": lambda m: m.author_id,
    "from_role": lambda m: m.from_role,
    "to_role": lambda m: m.to_role,
    "kind": lambda m: m.kind,
    "status": lambda m: m.status,
    "thread": lambda m: m.thread_id,
    "day": day_of,
    "month": lambda m: day_of(m)[:7],
    "year": lambda m: day_of(m)[:4],
}


@pytest.mark.parametrize("seed", range(6))
def test_tables_equal_a_recount(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = [said_by_one_name(m) for m in random_messages(chance, 40)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    for _ in range(6):
        query, by = random_query(chance), tuple(chance.sample(sorted(ONE), chance.choice((1, 2))))
        hits, every = naive_hits(messages, query), naive_hits(messages)

        def key(m: SourceMessage, by: tuple[str, ...] = by) -> tuple[str | None, ...]:
            return tuple(ONE[name](m) for name in by)

        groups, of = Counter(map(key, hits)), Counter(map(key, every))
        people = {group: len({m.author_id for m in hits if key(m) == group}) for group in groups}
        table = desk.count(query, by=by).object["table"]
        assert table["columns"] == [*by, "messages", "all", "authors"]
        told = {tuple(row[:-3]): tuple(row[-3:]) for row in table["rows"] if row[-3] and "before" not in str(row)}
        before = sum(row[-3] for row in table["rows"] if "before" in str(row))
        expected = {group: (n, of[group], people[group]) for group, n in groups.items()}
        assert told == expected or before or "rest" in table
        assert told.items() <= expected.items()
        left = table.get("rest", {"messages": 0})["messages"]
        assert sum(n for n, _, _ in told.values()) + before + left == len(hits)


def said_by_one_name(m: SourceMessage) -> SourceMessage:
    return SourceMessage(**{name: getattr(m, name) for name in m.__slots__} | {"author": m.author_id})


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    messages = [
        said(0, "docker up", author="Ann", conversation="ops"),
        said(1, "dockerhub is down", author="Bo", topic="docker"),
        said(2, "docker", author="Bo", kind="bot", from_role="client"),
        said(60 * 24 * 40, "nothing here", author="Cy"),
        said(3, "docker joined", kind=ACTIVITY),
        said(4, "", kind=TOMBSTONE),
    ]
    return desk_of(tmp_path, corpus_of(tmp_path, messages, index=False), brute=True)


def test_a_count_reads_as_lines(desk: Desk) -> None:
    quiet_weeks = ("2016-W49", "2016-W50", "2016-W51", "2016-W52", "2017-W01")
    assert desk.count("docker").text.split("\n") == [
        "searched: docker (found by scan; activity not searched: 1 match; times UTC; as of 2016-11-30)",
        "found: 3 messages by 2 authors in 2 conversations, 2016-11-30 to 2016-11-30",
        "by week, matches/all: 2016-W48 3/3, " + ", ".join(f"{week} 0/0" for week in quiet_weeks) + ", 2017-W02 0/1",
        "conversation: general 2, ops 1",
        "author: Bo 2, Ann 1",
        "from_role: unknown 2, client 1",
        "kind: message 2, bot 1",
        "term docker: inside docker 3, dockerhub 1",
    ]


def test_a_count_of_everything_describes_the_corpus(desk: Desk) -> None:
    told = desk.count()
    assert told.object["corpus"] == {
        "conversations": 2,
        "roles": {"unknown": 3, "client": 1},
        "kinds": {"message": 3, "activity": 1, "bot": 1},
        "in_threads": 0,
        "scripts": {},
    }
    assert "Conversations: general 3, ops 1." in told.text


def test_no_match_names_what_would_match_without_each_condition(desk: Desk) -> None:
    told = desk.count("docker", author=("Cy",), from_role=("client",), after="2016-11-30")
    assert told.object["found"] == {"messages": 0, "threads": 0, "conversations": 0, "authors": 0}
    assert told.object["hints"]["without"] == {"from_role": 0, "author": 1, "after": 0, "query": 0}
    assert told.object["hints"]["terms"]["docker"]["messages"] == 4
    assert "hint: without from_role 0, without author 1, without after 0, without query 0 would match" in told.text
    assert "hint: docker alone is in 4 messages" in told.text


def test_compared_queries_stand_beside_each_row(desk: Desk) -> None:
    told = desk.count("docker", by=("author",), compare=("nothing", "down OR up"))
    assert told.object["table"] == {
        "columns": ["author", "messages", "all", "authors", "nothing", "down OR up"],
        "rows": [["Bo", 2, 2, 1, 0, 1], ["Ann", 1, 1, 1, 0, 1], ["Cy", 0, 1, 0, 1, 0]],
    }
    assert told.text.split("\n")[4:] == [
        "term docker: inside docker 3, dockerhub 1",
        "by author, matches/all (authors), vs nothing, down OR up:",
        "- Bo 2/2 (1) vs 0, 1",
        "- Ann 1/1 (1) vs 0, 1",
        "- Cy 0/1 (0) vs 1, 0",
    ]


def test_times_by_two_dimensions_come_in_order(desk: Desk) -> None:
    told = desk.count(by=("month", "author")).object["table"]["rows"]
    assert told == [["2016-11", "Bo", 2, 2, 1], ["2016-11", "Ann", 1, 1, 1], ["2017-01", "Cy", 1, 1, 1]]
    alone = desk.count(by=("month",)).object["table"]["rows"]
    assert alone == [["2016-11", 3, 3, 2], ["2016-12", 0, 0, 0], ["2017-01", 1, 1, 1]]


@pytest.mark.parametrize("by", [("author",), ("month",), ("year", "kind"), ("thread",)])
def test_a_table_of_nothing_is_empty_but_for_its_times(desk: Desk, by: tuple[str, ...]) -> None:
    rows = desk.count("zzz", by=by).object["table"]["rows"]
    assert all(row[-3] == 0 for row in rows)
    assert [row[0] for row in rows] == (["2016-11", "2016-12", "2017-01"] if by == ("month",) else [])


def test_a_corpus_without_messages_has_no_times(tmp_path: Path) -> None:
    empty = desk_of(tmp_path, corpus_of(tmp_path, [], index=False))
    assert (empty.count("x").object["found"]["messages"], "over_time" in empty.count("x").object) == (0, False)


def test_a_period_without_messages_has_no_times(desk: Desk) -> None:
    told = desk.count(after="2030").object
    assert (told["found"]["messages"], "over_time" in told) == (0, False)
    assert desk.count(after="2030", by=("day",)).object["table"]["rows"] == []


def test_a_count_without_hits_told_of_each_term_twice(desk: Desk) -> None:
    told = desk.count("docker zzz")
    assert told.object.keys() & {"top", "terms", "hints"} == {"hints"}
    assert sum(line.startswith(("term docker", "hint: docker")) for line in told.text.split("\n")) == 1


def many(share: int, season: int) -> list[SourceMessage]:
    bot = [said(n, f"build {n}", author="CI") for n in range(share)]
    people = [said(n * season, f"build {n}", author=f"P{n}", native_id=f"p{n}") for n in range(100, 102)]
    return [*bot, *people]


@pytest.mark.parametrize(
    ("share", "season", "notes"),
    [
        (30, 10, ["30 of 32 are by CI, which wrote only from 2016-11-30 to 2016-11-30"]),
        (1_009, 1, ["1009 of 1011 are by CI"]),
        (10, 10, None),
        (5, 10, None),
    ],
)
def test_one_author_of_nearly_all_matches_is_named(
    tmp_path: Path, share: int, season: int, notes: list[str] | None
) -> None:
    desk = desk_of(tmp_path, corpus_of(tmp_path, many(share, season), index=False))
    assert desk.count("build").object.get("notes") == notes
    assert "notes" not in desk.count("build", author=("CI",)).object


def test_an_author_of_the_only_second_there_is_was_said_to_have_written_only_then(tmp_path: Path) -> None:
    messages = [said(n, "build", author="CI" if n else "Ann", sent_at=0) for n in range(30)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    assert desk.count("build").object["notes"] == ["29 of 30 are by CI"]


def test_a_mute_author_is_not_named_for_talk_out_of_the_period(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, corpus_of(tmp_path, many(30, 10), index=False))
    assert desk.count("build", before="2016-11-30T12:10Z").object.get("notes") is None


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("letter", ["x", "ж", "花", "🎉", '"', "\\"])
def test_a_count_fits_its_bytes_whatever_the_names(tmp_path: Path, letter: str, structured: bool) -> None:  # noqa: FBT001 - a parameter
    page = PageBudget(structured=structured)
    messages = [
        said(
            n,
            f"{letter * 30} {n}",
            author=letter * 99 + str(n),
            conversation=letter * 99 + str(n),
            from_role=letter * 50 + str(n),
        )
        for n in range(60)
    ]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False), limits=Limits(page=page))
    term = '"' + (letter * 250).replace('"', '""') + '"'
    for arguments in (
        {},
        {"compare": (term,) * 5},
        {
            "author": tuple(letter * 99 + str(n) for n in range(5)),
            "from_role": tuple(letter * 50 + str(n) for n in range(5)),
        },
    ):
        for query in (
            "",
            " OR ".join((term[:20].rstrip('"') + '"', *(f'"{letter}{n}"' for n in range(9))))
            if letter != '"'
            else term,
        ):
            told = desk.count(query, **arguments)
            assert fits(told.text, told.object, page, page.count)
            table = desk.count(query, by=("author", "conversation"), **arguments)
            assert fits(table.text, table.object, page, page.page)


def test_days_of_the_configured_zone_are_counted(tmp_path: Path) -> None:

    zone = ZoneInfo("America/New_York")
    start = datetime(2016, 11, 5, 12, tzinfo=UTC)
    noon = datetime(2016, 11, 30, 12, tzinfo=UTC)
    hours = [int((start - noon + timedelta(hours=h)) / timedelta(minutes=1)) for h in range(48)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, [said(m, "x") for m in hours], index=False), zone=zone)
    assert desk.count("x").object["over_time"] == {
        "unit": "day",
        "rows": [["2016-11-05", 16, 16], ["2016-11-06", 25, 25], ["2016-11-07", 7, 7]],
        "zone": "America/New_York",
    }


def test_times_were_called_utc_where_buckets_were_cut_in_another_zone(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, corpus_of(tmp_path, [said(0, "x")], index=False), zone=ZoneInfo("Europe/Berlin"))
    zoned = "times UTC, buckets Europe/Berlin; as of 2016-11-30)"
    for arguments, by_time in (({}, True), ({"by": ("author",)}, False), ({"by": ("author", "day")}, True)):
        told = desk.count("x", **arguments)
        assert told.text.split("\n")[0].endswith(zoned if by_time else "times UTC; as of 2016-11-30)")
        table = told.object.get("over_time") or told.object["table"]
        assert table.get("zone") == ("Europe/Berlin" if by_time else None)
