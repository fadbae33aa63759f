"""Which hits come first, and which messages stand around them."""

import random
from pathlib import Path

import numpy as np
import pytest

from engine.excerpts import blocks_of
from engine.model import ACTIVITY
from engine.view import View
from tests.engine.corpora import NOON, Desk, corpus_of, desk_of, random_messages, said, view_of


def first(desk: Desk, query: str, **arguments: object) -> list[str]:
    return [m["id"].partition(":")[2] for m in desk.search(query, limit=50, **arguments).object["messages"]]


@pytest.mark.parametrize("index", [False, True])
def test_whole_words_outrank_prefixes_and_those_what_stands_inside(tmp_path: Path, index: bool) -> None:  # noqa: FBT001 - a parameter
    bodies = ("a docker b", "a dockers b", "a mydockers b")
    messages = [said(n, body, conversation=f"c{n}") for n, body in enumerate(bodies)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=index))
    assert first(desk, "docker") == ["0", "1", "2"]
    assert first(desk_of(tmp_path, desk.view.corpus, brute=True), "docker") == ["0", "1", "2"]


def test_a_subject_line_counts_twice(tmp_path: Path) -> None:
    messages = [
        said(1, "other", topic="docker", conversation="a"),
        said(2, "docker", topic="other", conversation="b"),
        said(3, "docker docker docker docker", conversation="c"),
    ]
    assert first(desk_of(tmp_path, corpus_of(tmp_path, messages, index=False)), "docker") == ["3", "1", "2"]


def test_short_messages_do_not_outrank_what_was_said(tmp_path: Path) -> None:
    messages = [
        said(1, "docker worries: docker is down and I would like it up again, please", conversation="a"),
        said(2, "docker", conversation="b"),
    ]
    assert first(desk_of(tmp_path, corpus_of(tmp_path, messages, index=False)), "docker") == ["1", "2"]


def test_ties_go_to_the_newest(tmp_path: Path) -> None:
    messages = [said(n, f"docker {n}", conversation=f"c{n}") for n in range(5)]
    assert first(desk_of(tmp_path, corpus_of(tmp_path, messages, index=False)), "docker") == ["4", "3", "2", "1", "0"]


def test_a_long_talk_does_not_fill_the_page(tmp_path: Path) -> None:
    minutes = (0, 1, 2, 3, 100, 101, 200)
    messages = [said(n, f"docker {n}", sent_at=NOON + m * 60_000_000) for n, m in enumerate(minutes)]
    messages += [said(20 + n, f"docker {20 + n}", thread_native_id="20", sent_at=NOON + n) for n in range(3)]
    messages += [said(40, "docker far", conversation="far", sent_at=NOON - 1)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    shown = first(desk, "docker")
    assert (shown[:2], shown[2:5], len(shown)) == (["6", "40"], ["5", "3", "22"], 11)


def test_what_holds_more_of_the_alternatives_comes_before_another_conversation_has_its_turn(tmp_path: Path) -> None:
    both = [said(n, f"zebra and docker {n}", sent_at=NOON + n) for n in range(2)]
    one = [said(10 + n, f"docker {n}", conversation=f"far {n}", sent_at=NOON + n) for n in range(5)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, [*both, *one], index=False))
    assert first(desk, "docker OR zebra")[:3] == ["1", "0", "14"]
    assert set(first(desk, "docker")[:6]) == {"1", "10", "11", "12", "13", "14"}


def test_equal_texts_of_one_author_merge_and_of_ten_people_from_five_words_up(tmp_path: Path) -> None:
    messages = [said(n, "ok docker", author=f"P{n}") for n in range(10)]
    messages += [said(20 + n, "OK, Docker", author="P99") for n in range(3)]
    messages += [said(30 + n, "ok docker is down again", author=f"P{n}") for n in range(10)]
    messages += [said(50 + n, "", author="P1", topic="docker") for n in range(2)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    told = desk.search("docker", limit=50).object
    copies = sorted((m.get("copies", 0) for m in told["messages"]), reverse=True)
    assert copies == [9, 2, 1, *[0] * 10]
    assert told["shown"] + told["copies"] == 25


def naive_block(view: View, row: int, context: int) -> list[int]:
    around = [int(r) for r in view.neighbours(row)]
    at = around.index(row)
    return around[max(0, at - context) : at + context + 1]


@pytest.mark.parametrize("seed", range(8))
def test_blocks_hold_each_window_once_and_nothing_else(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    view = view_of(corpus_of(tmp_path, random_messages(chance, 60), index=False))
    said_rows = [int(row) for row in np.flatnonzero(view.said)]
    for context in (0, 1, 3):
        chosen = chance.sample(said_rows, min(len(said_rows), 8))
        matching = np.zeros(view.corpus.rows, dtype=bool)
        matching[chosen + chance.sample(said_rows, len(said_rows) // 4)] = True
        blocks = blocks_of(view, chosen, matching, context)
        shown = [row for block in blocks for row in block.rows]
        assert len(shown) == len(set(shown))
        assert set(shown) == {r for row in chosen for r in naive_block(view, row, context)}
        assert blocks == [] or chosen[0] in blocks[0].rows
        for block in blocks:
            assert block.hits == {row for row in block.rows if matching[row]}
            instants = view.narrow.sent_at(list(block.rows)).tolist()
            assert instants == sorted(instants)


def test_activity_stands_alone(tmp_path: Path) -> None:
    messages = [said(1, "a"), said(2, "joined", kind=ACTIVITY), said(3, "b")]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    assert first(desk, "joined", kind=(ACTIVITY,), context=2) == ["2"]
