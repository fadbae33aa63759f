"""Queries and their meaning: the cases of `tests/fixtures/queries.txt`, and the limits one by one."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.limits import QueryLimits
from engine.query.parse import Parsed, parse
from engine.query.tree import And, Not, Or, Term, Tree

LIMITS = QueryLimits()
A, B, C, D = (Term(letter) for letter in "abcd")


@dataclass
class Case:
    query: str
    answer: str = ""
    notes: list[str] = field(default_factory=list)


def _cases() -> list[Case]:
    cases: list[Case] = []
    path = Path(__file__).parents[2] / "fixtures" / "queries.txt"
    for line in path.read_text("utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "?":
            cases.append(Case(rest))
        elif mark == "*":
            cases[-1].notes.append(rest)
        elif mark in {"=", "~", "!"}:
            cases[-1].answer = line
        else:
            assert mark in {"", "#"}, line
    return cases


def _answer(query: str) -> tuple[str, list[str]]:
    try:
        parsed = parse(query, LIMITS)
    except BadInput as error:
        return f"! {error.to_text()}", []
    return f"{'~' if parsed.literal else '='} {parsed.tree}", list(parsed.notes)


def _error(query: str, limits: QueryLimits = LIMITS) -> str:
    with pytest.raises(BadInput) as caught:
        parse(query, limits)
    return caught.value.to_text()


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case.query)
def test_a_query_means_what_the_cases_say(case: Case) -> None:
    assert _answer(case.query) == (case.answer, case.notes)


@pytest.mark.parametrize("case", [c for c in _cases() if c.answer[0] != "!"], ids=lambda case: case.query)
def test_the_canonical_form_of_a_case_reads_back_as_its_tree(case: Case) -> None:
    parsed = parse(case.query, LIMITS)
    assert parse(str(parsed.tree), LIMITS).tree == parsed.tree


@pytest.mark.parametrize(
    ("query", "tree"),
    [
        ("a b OR c AND d", Or((And((A, B)), And((C, D))))),
        ("a (b OR c) d", And((A, Or((B, C)), D))),
        ("NOT a b OR NOT (c d)", Or((And((Not(A), B)), Not(And((C, D)))))),
        ("(a (b (c d)))", And((A, B, C, D))),
        ("topic:(a OR NOT =b)", Or((Term("a", part="topic"), Not(Term("b", whole=True, part="topic"))))),
        ('body:="a ""b"" c"', Term('a "b" c', whole=True, part="body")),
        ("topic:(a) b", And((Term("a", part="topic"), B))),
        ("C* (main())", And((Term("C"), Term("main()")))),
    ],
    ids=str,
)
def test_the_tree_of_a_query_is_built_as_the_grammar_says(query: str, tree: Tree) -> None:
    assert parse(query, LIMITS).tree == tree


@pytest.mark.parametrize("query", ["", "   ", "\n\t", "\u00a0\u3000"])
def test_an_empty_query_has_no_tree(query: str) -> None:
    assert parse(query, LIMITS) == Parsed(None, (), literal=False)


def test_every_unicode_blank_separates_terms_and_operators() -> None:
    assert parse("a\u3000OR\u00a0b\u2003(\u2028c\u0085d\x1f) ", LIMITS).tree == Or((A, And((B, C, D))))


def test_a_query_may_have_as_many_characters_as_the_limit_says_and_no_more() -> None:
    assert parse("a" * 4_096, LIMITS).tree == Term("a" * 4_096)
    expected = "query_too_long: 4097 characters, 4096 at most, exceeded at position 4097"
    assert _error("\0" * 4_097) == f"{expected}; use stems, or split into two calls"


def test_a_query_may_have_as_many_terms_as_the_limit_says_and_no_more() -> None:
    assert parse(" OR ".join(["ab"] * 256), LIMITS).tree == Or((Term("ab"),) * 256)
    expected = "query_too_long: 312 terms, 256 at most, exceeded at position 1537"
    assert _error(" OR ".join(["ab"] * 312)) == f"{expected}; use stems, or split into two calls"


def test_a_literal_query_is_held_to_the_same_number_of_terms() -> None:
    phrase = '"' + " ".join(["a"] * 254) + '"'
    assert len(str(parse(f"{phrase} :) b", LIMITS).tree).split(" AND ")) == 256
    expected = "query_too_long: 257 terms, 256 at most, exceeded at position 516"
    assert _error(f"{phrase} :) b c") == f"{expected}; use stems, or split into two calls"


def test_the_number_of_terms_is_judged_before_their_order() -> None:
    assert _error("OR a b", QueryLimits(terms=1)).startswith("query_too_long: 2 terms, 1 at most")


@pytest.mark.parametrize("opening", ["(", "( ", "NOT ", "(NOT ", "NOT ("])
def test_a_query_nests_no_deeper_than_the_limit(opening: str) -> None:
    allowed = 64 // (opening.count("(") + opening.count("NOT"))
    query = opening * allowed + "a" + ")" * (opening.count("(") * allowed)
    assert not parse(query, LIMITS).literal
    assert _error(opening + query).startswith("query_too_deep: more than 64 levels")


def test_nesting_too_deep_is_told_with_its_position() -> None:
    expected = "query_too_deep: more than 64 levels of groups and NOT, exceeded at position"
    way_out = "use fewer groups, or split into two calls"
    assert _error("(" * 4_096) == f"{expected} 65; {way_out}"
    assert _error("NOT " * 1_024) == f"{expected} 257; {way_out}"
    assert _error("(" * 65 + "a" + ")" * 65) == f"{expected} 65; {way_out}"


def test_groups_side_by_side_are_no_deeper_than_one() -> None:
    assert parse("(a) NOT b " * 100, QueryLimits(levels=1)).tree == And((A, Not(B)) * 100)


@pytest.mark.parametrize(
    ("query", "what"),
    [("ab\0", "position 3 is NUL"), ("\ud83d", "position 1 is half of a surrogate pair")],
    ids=["nul", "surrogate"],
)
def test_what_is_no_text_is_refused_with_its_position(query: str, what: str) -> None:
    assert _error(query) == f"bad_query: the character at {what}, not text; remove it"


def test_a_note_names_a_long_word_in_part_only() -> None:
    (note,) = parse("a" * 4_000 + "*", LIMITS).notes
    assert note == f"the star of '{'a' * 80}…' is dropped: parts of words match anyway"
