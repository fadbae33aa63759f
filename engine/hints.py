"""What a person would try next: which condition emptied a search, and the words a term was found inside.

Counts obey the same filters and sight as the search itself. Must never know texts or bytes.
"""

from typing import Any

import numpy as np

from engine.hits import Hits
from engine.plan import meaning
from engine.query.tree import Term, canonical, positive_terms
from engine.text import fold, is_word_char

__all__ = ["hints_of", "inside_line", "is_word", "term_name", "words_of"]

_TERMS = 8
"""Terms that hints speak of: a longer query is no longer a matter of one word."""

_WORDS = 8
"""Words listed for one term; the rest is rare."""

_WORD_CHARS = 24
"""Longest word listed: a Chinese "word" is a clause, and a clause is text."""


def hints_of(hits: Hits) -> dict[str, Any]:
    """For a search without hits: the matches if one condition were dropped, and how common each term is.

    `{"without": {"after": 195, "query": 12}, "terms": {"docker": {"messages": 216}}}`; parts that say nothing
    are left out.
    """
    out: dict[str, Any] = {}
    without = {
        condition.name: len(hits.within(hits.query.scope(hits.view, without=condition.name)))
        for condition in hits.query.conditions
    }
    if without and hits.query.tree is not None:
        without["query"] = int(np.count_nonzero(hits.scope))
    if without:
        out["without"] = without
    if hits.occurrences:
        out["terms"] = {
            term_name(each.term): {"messages": hits.document_frequency(each)} for each in hits.occurrences[:_TERMS]
        }
    return out


def inside_line(hits: Hits) -> str:
    """`inside: docker 117, dockerhub 7` when less than half of the matches are whole words, else nothing."""
    if hits.query.tree is None or not len(hits.rows):
        return ""
    found = {meaning(each.term): each for each in hits.occurrences}
    parts: list[str] = []
    for term in dict.fromkeys(positive_terms(hits.query.tree)):
        if not is_word(term) or len(parts) == _TERMS:
            continue
        words = found[meaning(term)].words(hits.view.corpus, hits.rows)
        if 2 * words.get(fold(term.text), 0) < len(hits.rows):
            parts.append(", ".join(f"{word} {count}" for word, count in words_of(words).items()))
    return f"inside: {'; '.join(part for part in parts if part)}" if any(parts) else ""


def words_of(words: dict[str, int]) -> dict[str, int]:
    """The most frequent words, long ones cut; words that become the same are one."""
    out: dict[str, int] = {}
    for word, count in words.items():
        short = word if len(word) <= _WORD_CHARS else word[: _WORD_CHARS - 1] + "…"
        if short in out or len(out) < _WORDS:
            out[short] = out.get(short, 0) + count
    return out


def is_word(term: Term) -> bool:
    """Whether a term is a piece of one word, so that it has words it stands inside."""
    return not term.whole and all(is_word_char(char) for char in fold(term.text))


def term_name(term: Term) -> str:
    """A term as a key or in a line: canonical, and cut."""
    name = canonical(term)
    return name if len(name) <= 60 else name[:59] + "…"
