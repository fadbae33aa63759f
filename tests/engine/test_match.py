"""Matching against a naive reference, and the places of matches on the original."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.align import segments
from engine.graphemes import graphemes
from engine.match import Frequency, TermCounts, compile_tree
from engine.query.tree import And, Not, Or, Part, Term, Tree
from engine.text import fold, is_word_char
from tests.depth import depth

words = st.text(st.sampled_from("aабßsé\u0301йf-_. 好ﾊﾞ👩\u200d👧é\r\n"), min_size=1, max_size=4)
messages = st.text(st.sampled_from("aабßsé\u0301йf-_. 好ﾊﾞ👩\u200d👧é\r\n"), max_size=14)
parts: st.SearchStrategy[Part] = st.sampled_from(["any", "topic", "body"])
leaves = st.builds(Term, words, st.booleans(), parts)
trees: st.SearchStrategy[Tree] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.tuples(inner, inner)),
        st.builds(Or, st.tuples(inner, inner, inner)),
    ),
    max_leaves=6,
)


def _edge(text: str, place: int) -> bool:
    return place in (0, len(text)) or not (is_word_char(text[place - 1]) and is_word_char(text[place]))


def _whole_somewhere(term: str, text: str) -> bool:
    return any(text.startswith(term, at) and _edge(text, at) and _edge(text, at + len(term)) for at in range(len(text)))


def _naive(tree: Tree, topic: str, body: str) -> bool:
    if isinstance(tree, Not):
        return not _naive(tree.part, topic, body)
    if isinstance(tree, And):
        return all(_naive(part, topic, body) for part in tree.parts)
    if isinstance(tree, Or):
        return any(_naive(part, topic, body) for part in tree.parts)
    term = fold(tree.text)
    asked = {"any": [topic, body], "topic": [topic], "body": [body]}[tree.part]
    return any(_whole_somewhere(term, text) if tree.whole else term in text for text in map(fold, asked))


@settings(max_examples=depth(600, 100), deadline=None, derandomize=True)
@given(trees, messages, messages)
def test_matcher_agrees_with_a_naive_reading_of_the_query(tree: Tree, topic: str, body: str) -> None:
    assert compile_tree(tree).matches(topic, body) == _naive(tree, topic, body)


@settings(max_examples=depth(500, 83), deadline=None, derandomize=True)
@given(words, messages)
def test_counts_follow_the_text_from_left_to_right(term: str, body: str) -> None:
    literal, text = fold(term), fold(body)
    expected = {"whole": 0, "prefix": 0, "inside": 0}
    at = 0
    while at < len(text):
        if text.startswith(literal, at):
            left, right = _edge(text, at), _edge(text, at + len(literal))
            expected["whole" if left and right else "prefix" if left else "inside"] += 1
            at += len(literal)
        else:
            at += 1
    (counts,) = compile_tree(Term(term)).counts("", text)
    assert counts == TermCounts(Term(term), Frequency(), Frequency(**expected))
    assert counts.body.total == sum(expected.values())


@settings(max_examples=depth(500, 83), deadline=None, derandomize=True)
@given(words, messages)
def test_a_whole_term_holds_exactly_where_its_count_is_not_zero(term: str, body: str) -> None:
    matcher = compile_tree(Term(term, whole=True))
    (counts,) = matcher.counts("", fold(body))
    assert (counts.body.whole > 0) == matcher.matches("", body)
    assert (counts.body.prefix, counts.body.inside) == (0, 0)


@settings(max_examples=depth(600, 100), deadline=None, derandomize=True)
@given(words, messages)
def test_spans_cover_every_match_and_split_nothing(term: str, body: str) -> None:
    spans = compile_tree(Term(term)).spans(body, "body")
    borders = {0}
    for cluster in graphemes(body):
        borders.add(max(borders) + len(cluster))
    assert all(start in borders and end in borders and start < end for start, end in spans)
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    assert all(fold(term) in fold(body[start:end]) for start, end in spans)
    assert bool(spans) == (fold(term) in fold(body))
    outside = body
    for start, end in reversed(spans):
        outside = outside[:start] + "\x00" + outside[end:]
    assert fold(term) not in "".join(map(fold, segments(outside)))


SPANS = {
    ("ss", "Straße"): ["ß"],
    ("strasse", "Die STRAẞE."): ["STRAẞE"],
    ("документаци", "Документация, ДОКУМЕНТАЦИИ"): ["Документаци", "ДОКУМЕНТАЦИ"],
    ("и", "й и\u0301"): ["и\u0301"],
    ("resume", "re\u0301sume\u0301s"): ["re\u0301sume\u0301"],
    ("バ", "ﾊﾞｲﾄ"): ["ﾊﾞ"],
    ("文档", "更多的文档。"): ["文档"],
    ("عربي", "لغة عربية"): ["عربي"],
    ("ยาก", "ยุ่งยาก"): ["ยาก"],
    ("क", "किताब"): ["कि"],
    ("👧", "👩\u200d👩\u200d👧!"): ["👩\u200d👩\u200d👧"],
    ("🇪🇫", "🇩🇪🇫🇷"): ["🇩🇪🇫🇷"],
    ("o", "foo bar"): ["oo"],
    ("tel", "℡ 5"): ["℡"],
    ("\n", "a\r\nb"): ["\r\n"],
}


@pytest.mark.parametrize(("case", "marked"), SPANS.items())
def test_spans_lie_on_the_original(case: tuple[str, str], marked: list[str]) -> None:
    term, text = case
    assert [text[start:end] for start, end in compile_tree(Term(term)).spans(text, "body")] == marked


def test_spans_show_only_what_made_the_message_match() -> None:
    tree = And((Term("a", part="topic"), Or((Term("b"), Not(Or((Term("c"), Not(Term("d")))))))))
    matcher = compile_tree(tree)
    assert matcher.spans("abcd", "topic") == [(0, 2), (3, 4)]
    assert matcher.spans("abcd", "body") == [(1, 2), (3, 4)]


def test_overlapping_matches_of_several_terms_are_one_span() -> None:
    matcher = compile_tree(And((Term("docker com"), Term("compose"), Term("er"))))
    assert matcher.spans("use docker compose!", "body") == [(4, 18)]


def test_a_whole_occurrence_is_found_behind_one_that_is_not() -> None:
    matcher = compile_tree(Term("a a", whole=True))
    assert matcher.matches("", "ba a a")
    assert matcher.counts("", "ba a a a a") == (TermCounts(Term("a a", whole=True), Frequency(), Frequency(whole=2)),)


def test_ends_of_a_term_that_are_no_word_characters_are_edges() -> None:
    (dotted, plus) = compile_tree(Or((Term(".net"), Term("c++")))).counts("asp.net x.nets", "c++11 objc++")
    assert dotted == TermCounts(Term(".net"), Frequency(whole=1, prefix=1), Frequency())
    assert plus == TermCounts(Term("c++"), Frequency(), Frequency(whole=1, inside=1))


def test_a_term_never_spans_topic_and_body() -> None:
    assert not compile_tree(Term("ab")).matches("a", "b")
    assert not compile_tree(Term("a b")).matches("a ", "b")


def test_terms_that_fold_to_the_same_count_once() -> None:
    counts = compile_tree(Or((Term("É"), Term("e"), Term("E", part="body"), Not(Term("x"))))).counts("e", "e")
    once = Frequency(whole=1)
    assert counts == (
        TermCounts(Term("É"), once, once),
        TermCounts(Term("E", part="body"), Frequency(), once),
    )


def test_terms_of_one_part_do_not_count_in_the_other() -> None:
    (counts,) = compile_tree(Term("a", part="topic")).counts("a", "a a")
    assert counts == TermCounts(Term("a", part="topic"), Frequency(whole=1), Frequency())


def test_the_empty_query_matches_everything_and_marks_nothing() -> None:
    matcher = compile_tree(None)
    assert matcher.matches("", "")
    assert matcher.spans("text", "body") == []
    assert matcher.counts("", "text") == ()
