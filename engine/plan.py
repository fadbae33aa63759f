"""Which way each term is answered: by index where there is one, else by scan. Both give the same rows.

Decides the path and tells it. Must never know filters or sight.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.index.rows import intersected, is_member, unique
from engine.index.search import IndexedTerm
from engine.query.tree import And, Not, Or, Term, Tree, terms
from engine.scan import inside_words, scan
from engine.snapshot.open import Corpus
from engine.text import fold

__all__ = ["Occurrences", "Path", "distinct_terms", "evaluate", "matching_rows", "meaning", "occurrences"]

Path = Literal["fts", "substring"]
"""What found a hit: `fts` the index, `substring` a scan."""


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The sorted rows a term occurs in, over the whole corpus, and which path found them."""

    term: Term
    rows: NDArray[np.int64]
    path: Path
    indexed: IndexedTerm | None = None

    def tenths(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Weighted frequencies in some sorted rows, in tenths; `None` where only the texts can tell."""
        return self.indexed.tenths(rows) if self.indexed is not None and self.indexed.is_settled else None

    def words(self, corpus: Corpus, rows: NDArray[np.int64]) -> dict[str, int]:
        """The words a term without punctuation stands in, and in how many of some sorted rows each; most first."""
        if self.indexed is not None and self.indexed.is_settled:
            return self.indexed.words(rows)
        return inside_words(corpus, self.term, rows)


def meaning(term: Term) -> tuple[str, bool, str]:
    """What a term asks for: spelling that folds away does not make another."""
    return fold(term.text), term.whole, term.part


def distinct_terms(tree: Tree) -> list[Term]:
    """The terms of a tree, one for each meaning."""
    meanings = {meaning(term): term for term in reversed(terms(tree))}
    return list(reversed(meanings.values()))


def occurrences(corpus: Corpus, wanted: Sequence[Term], *, brute: bool) -> list[Occurrences]:
    """Where each term occurs: by index, or by one scan for all that it cannot answer. `brute` scans for all.

    Raises:
        Unavailable: `too_slow`.
    """
    index = None if brute else corpus.index
    indexed = index.look_up(wanted) if index is not None else [None] * len(wanted)
    rest = [term for term, found in zip(wanted, indexed, strict=True) if found is None]
    scanned = iter(scan(corpus, rest))
    return [
        Occurrences(term, found.rows, "fts", found)
        if found is not None
        else Occurrences(term, next(scanned), "substring")
        for term, found in zip(wanted, indexed, strict=True)
    ]


def matching_rows(tree: Tree, found: Sequence[Occurrences], size: int) -> NDArray[np.int64]:
    """The sorted rows, of `size`, that a tree holds on. Rare terms cost what they hold, not a mask over all rows."""
    by_meaning = {meaning(each.term): each.rows for each in found}

    def rows(node: Tree) -> NDArray[np.int64]:
        match node:
            case Term():
                return by_meaning[meaning(node)]
            case Or(parts):
                return unique(np.concatenate([rows(part) for part in parts]), size)
            case And(parts) if wanted := [part for part in parts if not isinstance(part, Not)]:
                held = sorted((rows(part) for part in wanted), key=len)
                out = reduce(lambda one, other: intersected(one, other, size), held)
                for part in parts:
                    if isinstance(part, Not):
                        out = out[~is_member(out, rows(part.part), size)]
                return out
            case _:
                return np.flatnonzero(evaluate(node, found, size))

    return rows(tree)


def evaluate(tree: Tree, found: Sequence[Occurrences], size: int) -> NDArray[np.bool_]:
    """The rows, of `size`, that a tree holds on, as a mask."""
    by_meaning = {meaning(each.term): each.rows for each in found}

    def mask(node: Tree) -> NDArray[np.bool_]:
        match node:
            case Term():
                out = np.zeros(size, dtype=bool)
                out[by_meaning[meaning(node)]] = True
                return out
            case Not(inner):
                return ~mask(inner)
            case And(parts):
                return reduce(np.logical_and, map(mask, parts))
            case _:
                return reduce(np.logical_or, map(mask, node.parts))

    return mask(tree)
