"""The scan against the matcher, which shares nothing with it: the same rows for any term over any texts."""

import random
from pathlib import Path

import pytest

from engine.limits import QueryLimits
from engine.match import compile_tree
from engine.plan import evaluate, occurrences
from engine.query.parse import parse
from engine.query.tree import Term, terms
from engine.scan import inside_words, scan
from engine.text import fold, is_word_char
from tests.engine.corpora import corpus_of, random_messages, random_query, said


@pytest.mark.parametrize("seed", range(8))
def test_a_scan_finds_the_very_rows_that_the_matcher_does(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    corpus = corpus_of(tmp_path, random_messages(chance, 80), shard_rows=chance.choice((20, 1_000)), index=False)
    texts = [(m.topic, m.body) for m in corpus.messages(range(corpus.rows))]
    queries = [parse(random_query(chance), QueryLimits()).tree for _ in range(25)]
    wanted = [term for tree in queries if tree is not None for term in terms(tree)]
    for term, rows in zip(wanted, scan(corpus, wanted), strict=True):
        matcher = compile_tree(term)
        assert rows.tolist() == [row for row, text in enumerate(texts) if matcher.matches(*text)], term
    found = occurrences(corpus, wanted, brute=True)
    for tree in queries:
        assert tree is not None
        matcher = compile_tree(tree)
        mask = evaluate(tree, found, corpus.rows).tolist()
        assert mask == [matcher.matches(*text) for text in texts], str(tree)


def test_no_terms_cost_no_statement(tmp_path: Path) -> None:
    assert scan(corpus_of(tmp_path, [said(1, "hello")]), []) == []


@pytest.mark.parametrize(
    ("body", "term", "whole"),
    [
        ("a.b", Term("a.b", whole=True), True),
        ("axb", Term("a.b", whole=True), False),
        ("xa.b", Term("a.b", whole=True), False),
        ("x->y", Term("->", whole=True), True),
        ("main()x", Term("main()", whole=True), True),
        ("xmain()", Term("main()", whole=True), False),
        ("line\nfoo\nline", Term("foo", whole=True), True),
        ("кот", Term("ко", whole=True), False),
        ("cafe\u0301s", Term("café", whole=True), False),
        ("การ", Term("กา", whole=True), False),
        ("foofoo foo", Term("foo", whole=True), True),
        ("a+b (c) [d] \\d $", Term("a+b (c) [d] \\d $", whole=True), True),
    ],
)
def test_a_scan_knows_edges_of_words_in_every_script(tmp_path: Path, body: str, term: Term, whole: bool) -> None:  # noqa: FBT001 - a table
    corpus = corpus_of(tmp_path, [said(1, body)], index=False)
    assert len(scan(corpus, [term])[0]) == whole


@pytest.mark.parametrize("seed", range(4))
def test_words_a_term_stands_inside_are_counted_once_a_message(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    corpus = corpus_of(tmp_path, random_messages(chance), shard_rows=chance.choice((7, 1_000)), index=False)
    for term in (
        Term("ок"),
        Term("docker"),
        Term("docker", part="topic"),
        Term("ение"),
        Term("花"),
        Term("a", part="body"),
    ):
        rows = scan(corpus, [term])[0]
        wanted = rows[: max(1, len(rows) // 2)]
        expected: dict[str, int] = {}
        for topic, body in corpus.folded(wanted) if len(wanted) else []:
            text = {"topic": topic, "body": body}.get(term.part, f"{topic}\n{body}")
            for word in {word for word in _words(text) if fold(term.text) in word}:
                expected[word] = expected.get(word, 0) + 1
        found = inside_words(corpus, term, wanted)
        assert found == expected
        assert list(found.items()) == sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))


def _words(text: str) -> list[str]:

    return "".join(c if is_word_char(c) else " " for c in text).split(" ")
