"""What holds for every query, whoever wrote it."""

import re
from itertools import product

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.errors import MAX_ERROR_BYTES, BadInput
from engine.limits import QueryLimits
from engine.query.parse import Parsed, parse
from engine.query.tree import And, Not, Or, Part, Term, Tree, all_of, any_of, positive_terms, terms
from tests.depth import depth

LIMITS = QueryLimits()
WIDE = QueryLimits(chars=10**6, terms=10**6, levels=100)
PARTS: tuple[Part, ...] = ("any", "topic", "body")

SIGNS = st.sampled_from(
    [
        "AND",
        " AND ",
        "OR",
        " OR ",
        "NOT",
        "NOT ",
        "or",
        "and",
        "not",
        "topic:",
        "body:",
        " ",
        "  ",
        "(",
        ")",
        '"',
        '""',
        "=",
        "*",
        "a",
        "foo",
        "й",
        "中",
        "é",
        "é",
        "_",
        "5",
        "->",
        "\u3000",
        "\n",
        "“",
        "👍🏽",
        ":",
    ]
)
TEXTS = st.lists(SIGNS | st.text(max_size=3), max_size=24).map("".join)
BROKEN_TEXTS = st.lists(SIGNS | st.sampled_from(["\0", "\ud800", "\udfff"]), max_size=12).map("".join)
TERMS = st.builds(
    Term,
    st.lists(SIGNS | st.text(max_size=3), min_size=1, max_size=4)
    .map("".join)
    .filter(lambda text: text.strip() and "\0" not in text),
    st.booleans(),
    st.sampled_from(PARTS),
)
TREES: st.SearchStrategy[Tree] = st.recursive(
    TERMS,
    lambda inner: (
        st.builds(Not, inner)
        | st.lists(inner, min_size=2, max_size=4).map(all_of)
        | st.lists(inner, min_size=2, max_size=4).map(any_of)
    ),
    max_leaves=12,
)


def _read(text: str) -> Parsed | BadInput:
    try:
        return parse(text, LIMITS)
    except BadInput as error:
        return error


@settings(max_examples=depth(300, 60), deadline=None, derandomize=True)
@given(TREES)
def test_every_tree_reads_back_from_what_it_prints(tree: Tree) -> None:
    parsed = parse(str(tree), WIDE)
    assert (parsed.tree, parsed.literal) == (tree, False)


@settings(max_examples=depth(600, 100), deadline=None, derandomize=True)
@given(TEXTS | BROKEN_TEXTS)
@example('"' * 4_096)
@example("(" * 2_048 + ")" * 2_048)
@example("a )" * 100)
def test_any_text_is_read_or_refused_with_a_position(text: str) -> None:
    match _read(text):
        case BadInput() as error:
            assert error.code in {"bad_query", "query_too_long", "query_too_deep"}
            assert len(error.to_text().encode()) <= MAX_ERROR_BYTES
            position = re.search(r"position (\d+)", error.message)
            assert position is not None
            assert 1 <= int(position[1]) <= len(text)
            assert error.next_step
        case Parsed(None, notes, literal):
            assert (text.strip(), notes, literal) == ("", (), False)
        case Parsed(Term() | And() | Or() | Not() as tree, notes, literal):
            assert parse(str(tree), WIDE).tree == tree
            assert set(positive_terms(tree)) <= set(terms(tree))
            assert all(term.text.strip() for term in terms(tree))
            assert len(set(notes)) == len(notes)
            assert any(note.startswith("searched literally: ") for note in notes) == literal


@settings(max_examples=depth(300, 60), deadline=None, derandomize=True)
@given(TEXTS)
def test_a_literal_query_is_its_pieces_and_an_unreadable_one_holds_an_operator(text: str) -> None:
    match _read(text):
        case Parsed(Term() | And() as tree, _, True):
            assert terms(tree) == tuple(Term(piece) for piece in text.split())
        case BadInput(code="bad_query"):
            assert re.search(r"AND|OR|NOT|topic:|body:|\0", text)
        case _:
            pass


def _holds(tree: Tree, true: frozenset[str]) -> bool:
    match tree:
        case Term(text):
            return text in true
        case Not(part):
            return not _holds(part, true)
        case And(parts):
            return all(_holds(part, true) for part in parts)
        case Or(parts):
            return any(_holds(part, true) for part in parts)


EXPRESSIONS = st.recursive(
    st.sampled_from("abc"),
    lambda inner: (
        inner.map("NOT {}".format)
        | inner.map("({})".format)
        | st.tuples(inner, st.sampled_from([" AND ", " OR ", " OR "]), inner).map("".join)
    ),
    max_leaves=10,
)


@settings(max_examples=depth(200, 60), deadline=None, derandomize=True)
@given(EXPRESSIONS)
def test_operators_bind_as_those_of_an_independent_language_do(query: str) -> None:
    tree = parse(query, LIMITS).tree
    assert tree is not None
    code = compile(query.replace("AND", "and").replace("OR", "or").replace("NOT", "not"), "query", "eval")
    for values in product([False, True], repeat=3):
        named = dict(zip("abc", values, strict=True))
        expected = eval(code, {}, named)  # noqa: S307 # the text is made above of three names and three operators
        assert _holds(tree, frozenset(name for name, value in named.items() if value)) == expected


@settings(max_examples=100, deadline=None, derandomize=True)
@given(EXPRESSIONS)
def test_a_blank_joins_as_and_does(query: str) -> None:
    assert parse(query.replace(" AND ", " "), LIMITS) == parse(query, LIMITS)
