"""What a person would try next: which condition emptied a search, the words a term was found inside, and close ones.

Counts obey the same filters and sight as the search itself. Must never know texts or bytes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.hits import Hits
from engine.index.pieces import pattern_of
from engine.plan import Occurrences, matching_rows, meaning
from engine.query.tree import And, Or, Term, Tree, all_of, canonical, positive_terms
from engine.text import fold, is_word_char

__all__ = ["close_notes", "close_of", "hints_of", "inside_line", "is_word", "term_name", "words_of"]

_TERMS = 8
"""Terms that hints speak of: a longer query is no longer a matter of one word."""

_WORDS = 8
"""Words listed for one term; the rest is rare."""

_CLOSE = 6
"""Close words of one term: the seventh is not what was meant."""

_CLOSE_BYTES = 800
"""Room for all close words of a result's hints."""

_NAME_CHARS = 60
"""Longest name of a term or group."""

_WORD_CHARS = 24
"""Longest word listed: a Chinese "word" is a clause, and a clause is text."""


def hints_of(hits: Hits) -> dict[str, Any]:
    """For a search without hits what would have some; for one with few the close words of its terms.

    `{"without": {"after": 195, "query": 12}, "without_part": {"docker": 3}, "terms": {"docker": {"messages": 216,
    "close": {"dockers": 2}}}}`: the matches if one filter, all words, or one part joined by AND were dropped; then in
    how many messages in sight each term is, and what is close to it in the scope. Parts that say nothing are left out.
    """
    if hits.found.messages:
        return _few(hits)
    out: dict[str, Any] = {}
    without = {
        condition.name: len(hits.within(hits.query.scope(hits.view, without=condition.name)))
        for condition in hits.query.conditions
    }
    if without and hits.query.tree is not None:
        without["query"] = int(np.count_nonzero(hits.scope))
    if without:
        out["without"] = without
    parts = _without_parts(hits)
    if parts:
        out["without_part"] = parts
    if hits.occurrences:
        out["terms"] = _with_close(hits, hits.occurrences[:_TERMS])
    return out


def _few(hits: Hits) -> dict[str, Any]:
    if hits.found.messages >= hits.view.limits.close_below:
        return {}
    found = _with_close(hits, hits.occurrences[:_TERMS])
    terms = {name: facts for name, facts in found.items() if "close" in facts}
    return {"terms": terms} if terms else {}


def _without_parts(hits: Hits) -> dict[str, int]:
    """For each part joined by AND the matches of the others under the same filters."""
    tree = hits.query.tree
    if not isinstance(tree, And):
        return {}
    out: dict[str, int] = {}
    for at, part in enumerate(tree.parts[:_TERMS]):
        rest = all_of((*tree.parts[:at], *tree.parts[at + 1 :]))
        rows = matching_rows(rest, hits.occurrences, hits.view.corpus.rows)
        name = _named(part)
        out[f"({name})" if isinstance(part, Or) else name] = int(np.count_nonzero(hits.scope[rows]))
    return out


def _with_close(hits: Hits, terms: Sequence[Occurrences]) -> dict[str, dict[str, Any]]:
    """Terms with the messages in sight that hold each, and their close words as far as there is room for them."""
    out: dict[str, dict[str, Any]] = {}
    room = _CLOSE_BYTES
    for each in terms:
        close: dict[str, int] = {}
        for word, count in close_of(hits, each).items():
            room -= len(word.encode()) + 12
            if room >= 0:
                close[word] = count
        facts: dict[str, Any] = {"messages": hits.document_frequency(each)}
        out[term_name(each.term)] = facts | ({"close": close} if close else {})
    return out


def close_of(hits: Hits, each: Occurrences) -> dict[str, int]:
    """What is close to a term that makes few messages of the scope match, with the messages of the scope that hold it.

    Nothing for a term under NOT, nor for one that was found by scan: only an index knows its words.
    """
    words = hits.view.corpus.close_words if each.indexed is not None and _is_asked(hits, each) else None
    if words is None:
        return {}
    found: dict[str, int] = hits.view.close.get(
        (hits.query.asked, each.term), lambda: words.counted(each.term, hits.scope, _CLOSE)
    )
    return found


def close_notes(hits: Hits) -> tuple[str, ...]:
    """A note where nothing matched and a scan left close words unsaid."""
    missing = not hits.found.messages and any(
        each.path == "substring" and pattern_of(each.term) and _is_asked(hits, each) for each in hits.occurrences
    )
    return ("close words are looked for by index alone, and this was answered by scan",) if missing else ()


def _is_asked(hits: Hits, each: Occurrences) -> bool:
    if hits.query.tree is None or meaning(each.term) not in {meaning(term) for term in positive_terms(hits.query.tree)}:
        return False
    return int(np.count_nonzero(hits.scope[each.rows])) < hits.view.limits.close_below


def inside_line(hits: Hits) -> str:
    """`inside: docker 117, dockerhub 7` when less than half of the matches are whole words, else nothing.

    Of a query of several terms each stands before its words: `inside: dock: docker 117; comp: compose 9`.
    """
    if hits.query.tree is None or not len(hits.rows):
        return ""
    found = {meaning(each.term): each for each in hits.occurrences}
    parts: list[str] = []
    asked = dict.fromkeys(positive_terms(hits.query.tree))
    for term in asked:
        if not is_word(term) or len(parts) == _TERMS:
            continue
        words = found[meaning(term)].words(hits.view.corpus, hits.rows)
        if 2 * words.get(fold(term.text), 0) < len(hits.rows):
            told = ", ".join(f"{word} {count}" for word, count in words_of(words).items())
            parts += [f"{term_name(term)}: {told}" if len(asked) > 1 else told] if told else []
    return f"inside: {'; '.join(parts)}" if parts else ""


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
    return _named(term)


def _named(tree: Tree) -> str:
    name = canonical(tree)
    return name if len(name) <= _NAME_CHARS else name[: _NAME_CHARS - 1] + "…"
