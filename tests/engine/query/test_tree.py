import pytest

from engine.query.tree import And, Not, Or, Term, Tree, all_of, any_of, canonical, positive_terms, terms

A, B, C, D = (Term(letter) for letter in "abcd")


@pytest.mark.parametrize(
    ("tree", "printed"),
    [
        (A, "a"),
        (Term("two words"), '"two words"'),
        (Term('say "hi"'), '"say ""hi"""'),
        (Term('5"'), '5"'),
        (Term('"'), '""""'),
        (Term("AND"), '"AND"'),
        (Term("AND", whole=True), "=AND"),
        (Term("AND", part="topic"), "topic:AND"),
        (Term("and"), "and"),
        (Term("=a"), '"=a"'),
        (Term("=>"), "=>"),
        (Term("=>", whole=True), '="=>"'),
        (Term("topic:x"), '"topic:x"'),
        (Term("topic:x", part="body"), 'body:"topic:x"'),
        (Term("topic:x", whole=True), "=topic:x"),
        (Term("main()"), "main()"),
        (Term("main("), '"main("'),
        (Term("main)"), '"main)"'),
        (Term("(main)"), '"(main)"'),
        (Term(")a"), ")a"),
        (Term("a*"), '"a*"'),
        (Term("*"), "*"),
        (Term("two words", whole=True, part="body"), 'body:="two words"'),
        (And((A, B, C)), "a AND b AND c"),
        (Or((And((A, B)), C)), "(a AND b) OR c"),
        (And((Or((A, B)), Not(C))), "(a OR b) AND NOT c"),
        (Not(Or((A, B))), "NOT (a OR b)"),
        (Not(Not(A)), "NOT NOT a"),
    ],
    ids=str,
)
def test_every_node_prints_itself_as_a_query(tree: Tree, printed: str) -> None:
    assert (canonical(tree), str(tree)) == (printed, printed)


def test_conjunctions_and_disjunctions_are_flat() -> None:
    assert all_of([A]) == any_of([A]) == A
    assert all_of([And((A, B)), C, Or((A, D))]) == And((A, B, C, Or((A, D))))
    assert any_of([A, Or((B, C)), And((C, D))]) == Or((A, B, C, And((C, D))))


def test_terms_come_in_order_of_appearance_and_repeat() -> None:
    tree = And((Or((B, A)), Not(C), A))
    assert terms(tree) == (B, A, C, A)


def test_positive_terms_are_those_under_an_even_number_of_nots() -> None:
    tree = And((A, Not(And((B, Not(C)))), Not(Not(D))))
    assert positive_terms(tree) == (A, C, D)
    assert positive_terms(Not(A)) == ()
