"""What a query's writer should be told about words that look like something else to a person.

Each kind of surprise is told once, however often it occurs. Must never change what a query means.
"""

from collections.abc import Iterable, Iterator

import regex

from engine.errors import quoted
from engine.query.spelling import starred
from engine.query.tokens import Kind, Token

__all__ = ["notes_on_pieces", "notes_on_tokens"]

_LOWER_CASE = {
    "or": "'or' in lower case is searched as a word; write OR to join alternatives",
    "and": "'and' in lower case is searched as a word; terms are joined by AND or a blank",
    "not": "'not' in lower case is searched as a word; write NOT to exclude a term",
}
_GLUED = regex.compile(r"(AND|OR|NOT)\(")
_CURLY = ("“", "”", "„")


def notes_on_pieces(pieces: Iterable[str]) -> tuple[str, ...]:
    """Notes on pieces that are all searched as they stand."""
    return _once(_LOWER_CASE[piece] for piece in pieces if piece in _LOWER_CASE)


def notes_on_tokens(tokens: Iterable[Token]) -> tuple[str, ...]:
    """Notes on a query that has been read, in order of first appearance."""
    return _once(note for token in tokens if token.kind is Kind.WORD for note in _on_word(token))


def _on_word(token: Token) -> Iterator[tuple[str, str] | str]:
    """Notes with a value in them come with their kind, so that only the first of a kind is kept."""
    if token.written in _LOWER_CASE:
        yield _LOWER_CASE[token.written]
    if starred(token.written) and token.whole:
        written = quoted(token.written)
        yield (
            "=*",
            f"the star of {written} is dropped: = asks for whole words; without = parts of words match",
        )
    elif starred(token.written):
        yield "*", f"the star of {quoted(token.written)} is dropped: parts of words match anyway"
    if glued := _GLUED.match(token.written):
        operator = glued.group(1)
        yield (
            "(",
            f"{quoted(token.written)} is searched as a word; put a blank between {operator} and its group",
        )
    elif _closes_first(token.text):
        yield ")", f"{quoted(token.written)} is searched as a word; put a blank between two groups"
    if token.text.startswith(_CURLY):
        yield "“", f"{quoted(token.text[0])} is searched as it stands; straight quotes make a phrase"


def _closes_first(word: str) -> bool:
    """True when a `)` inside `word` comes before the `(` it could belong to, as in `a)(b`."""
    level = 0
    for character in word:
        level += (character == "(") - (character == ")")
        if level < 0:
            return "(" in word
    return False


def _once(notes: Iterable[tuple[str, str] | str]) -> tuple[str, ...]:
    kept: dict[str, str] = {}
    for note in notes:
        kind, told = (note, note) if isinstance(note, str) else note
        kept.setdefault(kind, told)
    return tuple(kept.values())
