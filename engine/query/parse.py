"""Reads a query: text to tree with notes on what may surprise, or an error with position and expectation.

What follows the grammar is read by it. What does not is an error if it holds an operator or names a part, for
then its writer knows the language; else every piece of it is searched as it stands. Must never know the rules
of the grammar, nor what a corpus holds.
"""

import re
from dataclasses import dataclass

from engine.errors import BadInput
from engine.limits import QueryLimits
from engine.query.grammar import UnreadableError, read
from engine.query.notes import notes_on_pieces, notes_on_tokens
from engine.query.spelling import PIECE
from engine.query.tokens import Fault, tokens
from engine.query.tree import Term, Tree, all_of

__all__ = ["Parsed", "parse"]

_UNSPEAKABLE = re.compile("[\0\ud800-\udfff]")
_SHORTEN = "use stems, or split into two calls"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A query as read. `tree` is `None` for an empty one; `literal`: each piece is searched as it stands."""

    tree: Tree | None
    notes: tuple[str, ...]
    literal: bool


def parse(text: str, limits: QueryLimits) -> Parsed:
    """The meaning of `text`.

    Raises `BadInput` and nothing else: `query_too_long` beyond `limits.chars` characters or `limits.terms`
    terms, `query_too_deep` beyond `limits.levels` levels of groups and NOT, `bad_query` for the unreadable.
    """
    _check_characters(text, limits.chars)
    found = tokens(text)
    if not found:
        return Parsed(None, (), literal=False)
    _check_terms([token.position for token in found if token.is_term], limits.terms)
    try:
        tree = read(found, limits.levels)
    except UnreadableError as unreadable:
        fault = unreadable.fault
        if any(token.is_operator for token in found):
            message = f"{fault.what}: expected {fault.expected}"
            raise BadInput("bad_query", message, next_step=fault.way_out) from None
        return _literally(text, fault, limits)
    return Parsed(tree, notes_on_tokens(found), literal=False)


def _literally(text: str, fault: Fault, limits: QueryLimits) -> Parsed:
    """Every piece of `text` between blanks as a term of its own; `fault` says why."""
    pieces = list(PIECE.finditer(text))
    _check_terms([piece.start() + 1 for piece in pieces], limits.terms)
    words = [piece.group() for piece in pieces]
    note = f"searched literally: {fault.what}; each piece must occur"
    return Parsed(all_of(Term(word) for word in words), (note, *notes_on_pieces(words)), literal=True)


def _check_characters(text: str, most: int) -> None:
    if len(text) > most:
        message = f"{len(text)} characters, {most} at most, exceeded at position {most + 1}"
        raise BadInput("query_too_long", message, next_step=_SHORTEN)
    if bad := _UNSPEAKABLE.search(text):
        what = "NUL" if bad.group() == "\0" else "half of a surrogate pair"
        message = f"the character at position {bad.start() + 1} is {what}, not text"
        raise BadInput("bad_query", message, next_step="remove it")


def _check_terms(positions: list[int], most: int) -> None:
    if len(positions) > most:
        message = f"{len(positions)} terms, {most} at most, exceeded at position {positions[most]}"
        raise BadInput("query_too_long", message, next_step=_SHORTEN)
