"""The meaning of a query: terms joined by AND, OR and NOT. Every node prints itself back as a query.

    Term           the folded text contains it; `whole`: as whole words; `part`: only there
    And, Or        two parts or more, none of them of the same kind (flattened)
    Not            everything its part is not

Must never know how a query was written, what a corpus holds, or how a match is found.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

from engine.query.spelling import in_quotes, reads_bare

__all__ = [
    "And",
    "Not",
    "Or",
    "Part",
    "Term",
    "Tree",
    "all_of",
    "any_of",
    "canonical",
    "positive_terms",
    "terms",
]

Part = Literal["any", "topic", "body"]
"""Where a term must occur: in either part of a message, or in that one."""


@dataclass(frozen=True, slots=True)
class Term:
    """What must occur. `text` is raw as written, its quotes undone, and never empty."""

    text: str
    whole: bool = False
    part: Part = "any"

    def __str__(self) -> str:
        return canonical(self)


@dataclass(frozen=True, slots=True)
class And:
    """All of `parts`, each in any part of the message that its terms allow."""

    parts: tuple["Tree", ...]

    def __str__(self) -> str:
        return canonical(self)


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of `parts`."""

    parts: tuple["Tree", ...]

    def __str__(self) -> str:
        return canonical(self)


@dataclass(frozen=True, slots=True)
class Not:
    """Every message that `part` does not match."""

    part: "Tree"

    def __str__(self) -> str:
        return canonical(self)


Tree = Term | And | Or | Not
"""A query that asks for something. An empty query has no tree."""


def all_of(parts: Iterable[Tree]) -> Tree:
    """The conjunction of at least one tree, flattened; of one, that tree itself."""
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,)))
    return flat[0] if len(flat) == 1 else And(flat)


def any_of(parts: Iterable[Tree]) -> Tree:
    """The disjunction of at least one tree, flattened; of one, that tree itself."""
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,)))
    return flat[0] if len(flat) == 1 else Or(flat)


def canonical(tree: Tree) -> str:
    """`tree` as a query that parses back to it: AND spelled out, groups and quotes only where needed."""
    match tree:
        case Term():
            return _term(tree)
        case Not(part):
            return f"NOT {_inner(part)}"
        case And(parts):
            return " AND ".join(map(_inner, parts))
        case Or(parts):
            return " OR ".join(map(_inner, parts))
        case _:
            assert_never(tree)


def terms(tree: Tree) -> tuple[Term, ...]:
    """Every term in order of appearance, repeated ones repeated, those under NOT included."""
    return tuple(term for term, _ in _signed(tree, positive=True))


def positive_terms(tree: Tree) -> tuple[Term, ...]:
    """The terms whose presence can make a message match: those under no NOT, or an even number of them."""
    return tuple(term for term, positive in _signed(tree, positive=True) if positive)


def _signed(tree: Tree, *, positive: bool) -> Iterator[tuple[Term, bool]]:
    match tree:
        case Term():
            yield tree, positive
        case Not(part):
            yield from _signed(part, positive=not positive)
        case And(parts) | Or(parts):
            for part in parts:
                yield from _signed(part, positive=positive)
        case _:
            assert_never(tree)


def _inner(tree: Tree) -> str:
    return f"({canonical(tree)})" if isinstance(tree, And | Or) else canonical(tree)


def _term(term: Term) -> str:
    confined = term.part != "any"
    bare = reads_bare(term.text, whole=term.whole, confined=confined)
    prefix = (f"{term.part}:" if confined else "") + ("=" if term.whole else "")
    return prefix + (term.text if bare else in_quotes(term.text))
