"""What a person would try next, against a recount."""

import random
from pathlib import Path
from typing import Any

import pytest

from engine.errors import NotFound
from engine.hints import is_word, term_name, words_of
from engine.query.tree import Term
from engine.times import iso_micros
from tests.engine.corpora import corpus_of, desk_of, naive_hits, random_messages, random_query


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


def test_words_of_a_term_are_few_and_short() -> None:
    words = {"x" * 30: 5, "x" * 29: 4, **{f"w{n}": 1 for n in range(9)}}
    assert words_of(words) == {"x" * 23 + "…": 9, **{f"w{n}": 1 for n in range(7)}}


def test_a_term_is_named_canonically_and_cut() -> None:
    assert (term_name(Term("a b", whole=True)), term_name(Term("x" * 61))) == ('="a b"', "x" * 59 + "…")
    assert [is_word(Term(t)) for t in ("docker", "花", "a b", "c++")] == [True, True, False, False]
    assert not is_word(Term("docker", whole=True))
