"""Cuts the text of a query into tokens. It never fails: what cannot be read becomes a token that says why.

So a caller can tell whether operators were meant even where the query does not parse. A token is one of

    OPEN                   `(`, or `topic:(` with its part
    CLOSE                  `)` at the end of a word or phrase, or standing alone
    AND, OR, NOT           in capitals, alone between blanks and parentheses
    WORD, PHRASE           with what stands before them: `topic:`, `=`
    BROKEN                 with its fault

Must never know limits, nor which tokens may follow which.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from engine.errors import quoted
from engine.query.spelling import OPERATORS, PIECE, asks_whole, closing, starred
from engine.query.tree import Part

__all__ = ["Fault", "Kind", "Token", "tokens"]

_PHRASE = re.compile(r'"((?:[^"]|"")*+)"')
_QUOTE_OR_DROP = "put what is meant as text in double quotes"


class Kind(Enum):
    """What a token is."""

    OPEN = auto()
    CLOSE = auto()
    AND = auto()
    OR = auto()
    NOT = auto()
    WORD = auto()
    PHRASE = auto()
    BROKEN = auto()


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a query cannot be read: `what` names the position, the first character being 1."""

    what: str
    expected: str
    way_out: str = _QUOTE_OR_DROP


@dataclass(frozen=True, slots=True)
class Token:
    """`written` stands in the query from index `start` on; `text` is a term's own, less quotes and stars."""

    kind: Kind
    start: int
    written: str
    text: str = ""
    whole: bool = False
    part: Part = "any"
    fault: Fault | None = None

    @property
    def position(self) -> int:
        """Where it starts, the first character of the query being 1."""
        return self.start + 1

    @property
    def is_term(self) -> bool:
        """True for what is searched."""
        return self.kind in {Kind.WORD, Kind.PHRASE}

    @property
    def is_operator(self) -> bool:
        """True for what nobody writes by chance: AND, OR, NOT, or anything after `topic:` or `body:`."""
        return self.kind in {Kind.AND, Kind.OR, Kind.NOT} or self.part != "any"


def tokens(text: str) -> tuple[Token, ...]:
    """All tokens of `text` in order; none for a text of blanks."""
    found: list[Token] = []
    at = 0
    while piece := PIECE.search(text, at):
        at = piece.start()
        for token in _term(text, at):
            found.append(token)
            at = token.start + len(token.written)
    return tuple(found)


def _term(text: str, at: int) -> Iterator[Token]:
    """One `(`, or one term or operator with all the `)` right after it, from `at` on, which is no blank."""
    part, value = _confined(text, at)
    if text.startswith("(", value):
        yield Token(Kind.OPEN, at, text[at : value + 1], part=part)
        return
    if part != "any":
        inner, _ = _confined(text, value)
        if inner != "any":
            what = f"{inner}: at position {value + 1} stands inside {part}: at position {at + 1}"
            yield _broken(text, at, part, Fault(what, "a word, a phrase or '('", "name one part only"))
            return
    whole = asks_whole(text, value)
    value += whole
    if text.startswith('"', value):
        yield from _phrase(text, at, value, part, whole=whole)
    else:
        yield from _word(text, at, value, part, whole=whole)


def _word(text: str, at: int, value: int, part: Part, *, whole: bool) -> Iterator[Token]:
    found = PIECE.match(text, value)
    word = found.group() if found else ""
    close = closing(word)
    word = word[: len(word) - close]
    end = value + len(word)
    written = text[at:end]
    if written in OPERATORS:
        yield Token(Kind[written], at, written)
    elif word:
        bare = word[: len(word) - starred(word)]
        yield Token(Kind.WORD, at, written, bare, whole, part)
    elif part != "any":
        what = f"{part}: at position {at + 1} has nothing after it"
        expected = "a word, a phrase or '(' right after the colon"
        fault = Fault(what, expected, f'write {part}:word, or "{part}:" in quotes to find it as text')
        yield Token(Kind.BROKEN, at, written, part=part, fault=fault)
    yield from _closes(end, close)


def _phrase(text: str, at: int, value: int, part: Part, *, whole: bool) -> Iterator[Token]:
    found = _PHRASE.match(text, value)
    if found is None:
        fault = Fault(f"'\"' at position {value + 1} is never closed", "a closing '\"'", "close it with '\"'")
        yield _broken(text, at, part, fault)
        return
    inside = found.group(1).replace('""', '"')
    rest = PIECE.match(text, found.end())
    after = rest.group() if rest else ""
    stray = after.lstrip(")")
    whole_piece = text[at : found.end() + len(after)]
    if not inside.strip():
        what = f"the phrase at position {value + 1} holds nothing to find"
        fault = Fault(what, "a word or a sign between the quotes", "fill it or remove it")
        yield Token(Kind.BROKEN, at, whole_piece, part=part, fault=fault)
        return
    if stray:
        where = found.end() + len(after) - len(stray)
        what = f"{quoted(stray[0])} at position {where + 1} stands right after a phrase"
        fault = Fault(what, "a blank, ')' or the end", "put a blank after the phrase, or double a quote inside it")
        yield Token(Kind.BROKEN, at, whole_piece, part=part, fault=fault)
        return
    yield Token(Kind.PHRASE, at, text[at : found.end()], inside, whole, part)
    yield from _closes(found.end(), len(after))


def _closes(start: int, count: int) -> Iterator[Token]:
    for at in range(start, start + count):
        yield Token(Kind.CLOSE, at, ")")


def _confined(text: str, at: int) -> tuple[Part, int]:
    """The part that is named at `at`, and the index after its colon."""
    if text.startswith("topic:", at):
        return "topic", at + len("topic:")
    if text.startswith("body:", at):
        return "body", at + len("body:")
    return "any", at


def _broken(text: str, at: int, part: Part, fault: Fault) -> Token:
    """A token of the whole piece that starts at `at`: nothing in it can be told apart."""
    found = PIECE.match(text, at)
    return Token(Kind.BROKEN, at, found.group() if found else "", part=part, fault=fault)
