"""Which way each term is answered: by index where there is one, else by scan. Both give the same rows.

Decides the path and tells it. Must never know filters or sight.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.query.tree import And, Not, Or, Term, Tree, terms
from engine.scan import scan
from engine.snapshot.open import Corpus
from engine.text import fold

__all__ = ["Occurrences", "Path", "evaluate", "occurrences"]

Path = Literal["fts", "substring"]
"""What found a hit: `fts` the index, `substring` a scan."""


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The sorted rows a term occurs in, over the whole corpus, and which path found them."""

    term: Term
    rows: NDArray[np.int64]
    path: Path


def distinct_terms(tree: Tree) -> list[Term]:
    """The terms of a tree, one for each meaning: spelling that folds away does not make another."""
    meanings = {(fold(term.text), term.whole, term.part): term for term in reversed(terms(tree))}
    return list(reversed(meanings.values()))


def occurrences(corpus: Corpus, wanted: Sequence[Term], *, brute: bool) -> list[Occurrences]:
    """Where each term occurs. `brute` scans for all of them.

    Raises:
        Unavailable: `too_slow`.
    """
    del brute  # every term is scanned for until a snapshot carries an index
    return [Occurrences(term, rows, "substring") for term, rows in zip(wanted, scan(corpus, wanted), strict=True)]


def evaluate(tree: Tree, found: Sequence[Occurrences], size: int) -> NDArray[np.bool_]:
    """The rows, of `size`, that a tree holds on, as a mask."""
    by_meaning = {(fold(each.term.text), each.term.whole, each.term.part): each.rows for each in found}

    def mask(node: Tree) -> NDArray[np.bool_]:
        match node:
            case Term(text, whole, part):
                out = np.zeros(size, dtype=bool)
                out[by_meaning[fold(text), whole, part]] = True
                return out
            case Not(inner):
                return ~mask(inner)
            case And(parts):
                return reduce(np.logical_and, map(mask, parts))
            case Or(parts):
                return reduce(np.logical_or, map(mask, parts))

    return mask(tree)
