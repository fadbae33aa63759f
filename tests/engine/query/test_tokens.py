from hypothesis import given, settings
from hypothesis import strategies as st

from engine.query.tokens import Kind, Token, tokens
from tests.depth import depth

PIECES = st.sampled_from(
    [
        "a",
        "go*",
        "OR",
        "AND",
        "NOT",
        "or",
        "(",
        ")",
        '"',
        '""',
        "=",
        "topic:",
        "body:",
        " ",
        "\n",
        "é",
        "*",
        "x y",
    ]
)


def test_a_query_is_cut_into_tokens_with_all_that_belongs_to_them() -> None:
    assert tokens('NOT (topic:="a ""b" go*)') == (
        Token(Kind.NOT, 0, "NOT"),
        Token(Kind.OPEN, 4, "("),
        Token(Kind.PHRASE, 5, 'topic:="a ""b"', 'a "b', whole=True, part="topic"),
        Token(Kind.WORD, 20, "go*", "go"),
        Token(Kind.CLOSE, 23, ")"),
    )


def test_a_broken_piece_does_not_hide_the_operators_after_it() -> None:
    kinds = [token.kind for token in tokens('"a OR b')]
    assert kinds == [Kind.BROKEN, Kind.OR, Kind.WORD]


@settings(max_examples=depth(300, 60), deadline=None, derandomize=True)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_tokens_follow_one_another_and_leave_out_only_blanks(text: str) -> None:
    at = 0
    for token in tokens(text):
        assert text[at : token.start].strip() == ""
        assert text.startswith(token.written, token.start)
        assert token.written
        at = token.start + len(token.written)
    assert text[at:].strip() == ""
