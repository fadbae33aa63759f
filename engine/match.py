"""Does a message match, where, and how often: the truth, recomputed from texts alone.

Every hit that is shown is checked here again, so this shares nothing with the ways candidates are found. True
is what holds on `fold(query)` and `fold(text)`. Must never know a snapshot, an index or SQL.

An *occurrence* of a term is its folded text within a folded topic or body; one never spans both. Its left end
is an edge when the text starts there, or one of the two characters that meet there is no word character;
likewise its right end. With both edges an occurrence is `whole`, with only the left one a `prefix`, else
`inside`. A term under `=` holds where an occurrence is whole, and its other occurrences do not exist: they
neither count nor hide a whole one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

from engine.align import aligned_fold
from engine.graphemes import rounded_out
from engine.query.tree import And, Not, Or, Term, Tree, positive_terms, terms
from engine.text import fold, is_word_char

__all__ = ["Frequency", "Matcher", "TermCounts", "compile_tree"]

Kind = Literal["whole", "prefix", "inside"]


@dataclass(frozen=True, slots=True)
class Frequency:
    """How often a term occurs in one text, by class. The total is their sum."""

    whole: int = 0
    prefix: int = 0
    inside: int = 0

    @property
    def total(self) -> int:
        """Occurrences of any class."""
        return self.whole + self.prefix + self.inside


@dataclass(frozen=True, slots=True)
class TermCounts:
    """A term's occurrences in the topic and in the body; none in a part the term is not asked in."""

    term: Term
    topic: Frequency
    body: Frequency


@dataclass(frozen=True, slots=True)
class _Literal:
    """A term ready to be looked for: folded, and whether either end of it is an edge beside anything."""

    term: Term
    text: str
    left_edge: bool
    right_edge: bool


@dataclass(frozen=True, slots=True)
class Matcher:
    """A query with its terms folded once. Made by `compile_tree`; without a tree everything matches."""

    tree: Tree | None
    literals: dict[Term, _Literal]
    positive: tuple[_Literal, ...]

    def matches(self, topic: str, body: str) -> bool:
        """True when the message with these original texts matches."""
        return self.matches_folded(fold(topic), fold(body))

    def matches_folded(self, folded_topic: str, folded_body: str) -> bool:
        """True when the message with these folded texts matches."""
        return self.tree is None or self._holds(self.tree, folded_topic, folded_body)

    def spans(self, text: str, part: Literal["topic", "body"]) -> list[tuple[int, int]]:
        """Where the positive terms occur in an original text: spans [start, end) in characters, in order.

        Each is widened until folding and grapheme clusters allow a cut at both ends (`ss` marks all of `ß`);
        what overlaps or touches is one span.
        """
        folded = aligned_fold(text)
        found = [
            (start, start + len(literal.text))
            for literal in self.positive
            if literal.term.part in ("any", part)
            for start, _ in _occurrences(literal, folded.text)
        ]
        return rounded_out(text, folded.origins(_merged(found)))

    def counts(self, folded_topic: str, folded_body: str) -> tuple[TermCounts, ...]:
        """For each distinct positive term, in order of appearance, how often it occurs in each part and how.

        Occurrences are counted from left to right without overlap: after one, the search goes on at its end.
        """
        return tuple(
            TermCounts(
                literal.term,
                _count(literal, folded_topic) if literal.term.part != "body" else Frequency(),
                _count(literal, folded_body) if literal.term.part != "topic" else Frequency(),
            )
            for literal in self.positive
        )

    def _holds(self, tree: Tree, topic: str, body: str) -> bool:
        match tree:
            case Term(part=part):
                literal = self.literals[tree]
                return (part != "body" and _occurs(literal, topic)) or (part != "topic" and _occurs(literal, body))
            case Not(part):
                return not self._holds(part, topic, body)
            case And(parts):
                return all(self._holds(part, topic, body) for part in parts)
            case Or(parts):
                return any(self._holds(part, topic, body) for part in parts)
            case _:
                assert_never(tree)


def compile_tree(tree: Tree | None) -> Matcher:
    """`tree` made ready to match many messages; `None`, the empty query, matches all and marks nothing.

    Of positive terms that fold to the same, one stands for all.
    """
    if tree is None:
        return Matcher(None, {}, ())
    literals = {term: _literal(term) for term in terms(tree)}
    positive: dict[tuple[str, bool, str], _Literal] = {}
    for term in positive_terms(tree):
        literal = literals[term]
        positive.setdefault((literal.text, term.whole, term.part), literal)
    return Matcher(tree, literals, tuple(positive.values()))


def _literal(term: Term) -> _Literal:
    text = fold(term.text)
    return _Literal(term, text, not is_word_char(text[0]), not is_word_char(text[-1]))


def _occurs(literal: _Literal, text: str) -> bool:
    if not literal.term.whole:
        return literal.text in text
    return next(_occurrences(literal, text), None) is not None


def _occurrences(literal: _Literal, text: str) -> Iterator[tuple[int, Kind]]:
    """Start and class of each occurrence that counts, left to right, none overlapping another."""
    start = text.find(literal.text)
    while start >= 0:
        end = start + len(literal.text)
        kind = _kind(literal, text, start, end)
        counts = kind == "whole" or not literal.term.whole
        if counts:
            yield start, kind
        # What does not count must not swallow a whole occurrence that begins within it.
        start = text.find(literal.text, end if counts else start + 1)


def _kind(literal: _Literal, text: str, start: int, end: int) -> Kind:
    if not (literal.left_edge or start == 0 or not is_word_char(text[start - 1])):
        return "inside"
    if literal.right_edge or end == len(text) or not is_word_char(text[end]):
        return "whole"
    return "prefix"


def _count(literal: _Literal, text: str) -> Frequency:
    kinds = [kind for _, kind in _occurrences(literal, text)]
    return Frequency(kinds.count("whole"), kinds.count("prefix"), kinds.count("inside"))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, overlapping and touching ones made one."""
    out: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
