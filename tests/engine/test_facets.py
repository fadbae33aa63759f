"""What groups are called."""

from pathlib import Path

from engine.sight import Sight
from engine.tally import counting
from infra.counting import CountingStatements
from tests.engine.corpora import corpus_of, desk_of, said

MESSAGES = [
    said(1, "x", author="Zoe", author_id="U1", conversation="ops", conversation_id="C1"),
    said(2, "x", author="Zoë", author_id="U1", conversation="ops", conversation_id="C2"),
    said(3, "x", author="Zoë", author_id="U1"),
    said(4, "x", author="Zoë", author_id="U2", from_role="client", thread_native_id="3"),
    said(5, "x", author="Kim", author_id="U3", status="open"),
]


def test_groups_that_share_a_name_are_told_apart_by_id(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, corpus_of(tmp_path, MESSAGES, index=False))
    assert desk.count("x").object["top"] == {
        "conversation": {"general": 3, "ops (C1)": 1, "ops (C2)": 1},
        "author": {"Zoë (U1)": 3, "Zoë (U2)": 1, "Kim": 1},
        "from_role": {"unknown": 4, "client": 1},
        "kind": {"message": 5},
    }


def test_a_name_is_told_apart_from_visible_ones_only(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, corpus_of(tmp_path, MESSAGES, index=False), Sight(deny=("C2",), roles=("unknown",)))
    top = desk.count("x").object["top"]
    assert top["conversation"] == {"general": 2, "ops": 1}
    assert top["author"] in ({"Zoe": 2, "Kim": 1}, {"Zoë": 2, "Kim": 1})


def test_a_filter_of_one_value_has_no_facet(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, corpus_of(tmp_path, MESSAGES, index=False))
    assert set(desk.count("x", author=("Kim",), kind=("message",)).object["top"]) == {"conversation", "from_role"}


def test_a_thread_is_called_by_its_root_and_a_missing_status_is_a_group_of_its_own(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, corpus_of(tmp_path, MESSAGES, index=False))
    rows = desk.count("x", by=("thread",)).object["table"]["rows"]
    assert rows[0] == ["general:3", 2, 2, 2]
    assert {row[0] for row in rows[1:]} == {"C1:1", "C2:2", "general:5"}
    told = desk.count("x", by=("status",))
    assert told.object["table"]["rows"] == [[None, 4, 4, 2], ["open", 1, 1, 1]]
    assert told.text.split("\n")[-2:] == ["- (none) 4/4 (2)", "- open 1/1 (1)"]


def test_a_table_of_threads_read_its_names_one_by_one(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [said(n, "x") for n in range(100)], index=False)
    corpus.database = CountingStatements(corpus.database)
    desk = desk_of(tmp_path, corpus)
    with counting() as tally:
        desk.count(by=("thread",))
    assert tally.counts["statements"] == 1
