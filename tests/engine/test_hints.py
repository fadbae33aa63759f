"""What a person would try next, against a recount."""

import random
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from engine.errors import NotFound
from engine.hints import is_word, term_name, words_of
from engine.limits import Limits
from engine.query.tree import Term
from engine.times import iso_micros
from tests.engine.corpora import corpus_of, desk_of, naive_hits, random_messages, random_query, said


def test_words_inside_did_not_say_whose_they_were(tmp_path: Path) -> None:
    messages = [said(n, f"dockers composed plain {n}") for n in range(3)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages))
    told = {query: desk.search(query).text.split("\n")[3] for query in ("dock", "dock compose", "dock plain")}
    assert told == {
        "dock": "inside: dockers 3",
        "dock compose": "inside: dock: dockers 3; compose: composed 3",
        "dock plain": "inside: dock: dockers 3",
    }


@pytest.mark.parametrize("seed", range(8))
def test_without_a_condition_so_many_would_match(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = random_messages(chance, 60)
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    instant = chance.choice(messages).sent_at
    for _ in range(12):
        query = random_query(chance)
        filters: dict[str, Any] = {
            "from_role": (chance.choice(("client", "vendor")),),
            "author": ("u1",),
            "min_words": 3,
        }
        try:
            told = desk.search(query, after=iso_micros(instant), **filters).object
        except NotFound:
            continue
        if told["found"]["messages"]:
            continue

        def matching(left_out: str, query: str = query, filters: dict[str, Any] = filters) -> int:
            kept = {name: value for name, value in filters.items() if name != left_out}
            hits = naive_hits(messages, "" if left_out == "query" else query, **kept)
            return sum(left_out == "after" or m.sent_at >= instant for m in hits)

        assert told["hints"]["without"] == {
            name: matching(name) for name in ("from_role", "author", "min_words", "after", "query")
        }


def test_the_part_that_emptied_a_query_is_named(tmp_path: Path) -> None:
    messages = [said(1, "docker up"), said(2, "docker down", author="Bo"), said(3, "nothing of it"), said(4, "up")]
    told = desk_of(tmp_path, corpus_of(tmp_path, messages)).search("docker (up OR down) NOT docker", author=("Ann",))
    assert told.object["hints"] == {
        "without": {"author": 0, "query": 3},
        "without_part": {"docker": 1, "(up OR down)": 0, "NOT docker": 1},
        "terms": {"docker": {"messages": 2}, "up": {"messages": 2}, "down": {"messages": 1}},
    }
    assert "hint: without author 0, without query 3, without docker 1, without (up OR down) 0" in told.text


def test_few_hits_come_with_what_is_close_to_their_words(tmp_path: Path) -> None:
    messages = [said(at, body) for at, body in enumerate(("docker zebra", "dokcer", "dokcer", "zebras"))]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages))
    told = desk.search("docker NOT dokcerx")
    assert told.object["hints"] == {"terms": {"docker": {"messages": 1, "close": {"dokcer": 2}}}}
    assert "hint: docker alone is in 1 message; close: dokcer 2" in told.text
    assert "hints" not in desk.search("zebra").object
    # Read on, and it is not said again.
    assert "hints" not in desk.unseen("docker").object


def test_a_term_in_many_messages_comes_without_close_words(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [said(1, "docker"), said(2, "docker"), said(3, "dokcer")])
    for below, close in ((2, None), (3, {"dokcer": 1})):
        desk = desk_of(tmp_path, corpus, limits=Limits(close_below=below))
        assert desk.count("docker").object["terms"]["docker"].get("close") == close
        assert ("hints" in desk.search("docker").object) == (close is not None)


def test_close_words_in_hints_are_bounded_in_bytes(tmp_path: Path) -> None:
    words = [letter * 30 for letter in "abcdefgh"]
    messages = [said(at, f"{word[:-1]}{end}") for at, (word, end) in enumerate(product(words, "uvwxyz"))]
    hints = desk_of(tmp_path, corpus_of(tmp_path, messages)).search(" ".join(words)).object["hints"]
    offered = [list(facts.get("close", {})) for facts in hints["terms"].values()]
    assert [len(close) for close in offered] == [6, 6, 6, 1, 0, 0, 0, 0]


def test_a_search_by_scan_says_that_close_words_were_not_looked_for(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, corpus_of(tmp_path, [said(1, "docker"), said(2, "dokcer")]))
    note = "close words are looked for by index alone, and this was answered by scan"
    for brute in (False, True):
        told = replace(desk, brute=brute).count("dockre").object
        assert told.get("notes") == ([note] if brute else None)
        assert told["hints"]["terms"]["dockre"].get("close") == (None if brute else {"docker": 1})
    assert "notes" not in replace(desk, brute=True).count("docker").object


def test_words_of_a_term_are_few_and_short() -> None:
    words = {"x" * 30: 5, "x" * 29: 4, **{f"w{n}": 1 for n in range(9)}}
    assert words_of(words) == {"x" * 23 + "…": 9, **{f"w{n}": 1 for n in range(7)}}


def test_a_term_is_named_canonically_and_cut() -> None:
    assert (term_name(Term("a b", whole=True)), term_name(Term("x" * 61))) == ('="a b"', "x" * 59 + "…")
    assert [is_word(Term(t)) for t in ("docker", "花", "a b", "c++")] == [True, True, False, False]
    assert not is_word(Term("docker", whole=True))
