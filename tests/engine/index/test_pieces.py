"""Terms fall into pieces exactly as the builder's database splits texts into words."""

import sys

import duckdb

from engine.index.pieces import Pattern, Piece, pattern_of
from engine.query.tree import Term
from engine.text import is_word_char


def test_a_term_is_cut_into_pieces_with_their_distances() -> None:
    pieces = (Piece("docker", False, True), Piece("sock", True, True), Piece("pid", True, False))
    assert pattern_of(Term("docker.sock pid")) == Pattern(pieces, (2, 1), settled=False)


def test_single_spaces_settle_a_phrase_and_nothing_else_does() -> None:
    assert [pattern_of(Term(text)).settled for text in ("a b", "a  b", "a-b", "a.", " a", "a")] == [  # type: ignore[union-attr]
        *(True, False, False, False, False, True)
    ]


def test_a_whole_term_is_bounded_on_both_sides() -> None:
    assert pattern_of(Term("a b", whole=True)) == Pattern((Piece("a", True, True), Piece("b", True, True)), (1,), True)


def test_what_holds_no_word_is_left_to_the_scan() -> None:
    assert [pattern_of(Term(text)) for text in ("->", "?", "👍", " ")] == [None] * 4


def test_every_letter_is_one_to_the_database_too_or_left_to_the_scan() -> None:
    connection = duckdb.connect()
    (known,) = connection.execute(
        r"SELECT list(c) FROM range(1, 1114112) t(c) WHERE (c < 55296 OR c > 57343)"
        r" AND regexp_matches(chr(c::INT), '[\p{L}\p{M}\p{N}_]')"
    ).fetchall()[0]
    connection.close()
    letters = set(known)
    differ = [
        char
        for code in range(1, sys.maxunicode + 1)
        if not 0xD800 <= code <= 0xDFFF
        for char in (chr(code),)
        if is_word_char(char) != (code in letters) and pattern_of(Term(char)) is not None
    ]
    assert differ == []
