"""Terms looked up in the index of a whole snapshot: its shards are one corpus.

Decides what a pattern leaves to be verified on folded texts. Rows count from the first shard on. Must never know
filters, sight or ranking.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.index.blocks import BlockCache
from engine.index.pieces import Pattern, pattern_of
from engine.index.shard import ShardFiles, ShardIndex
from engine.index.terms import ShardTerm
from engine.match import compile_tree
from engine.query.tree import Term
from engine.scan import inside_words, scan
from engine.snapshot.format import POSITIONS, POSTINGS, TERMS

if TYPE_CHECKING:
    from engine.snapshot.open import Corpus

__all__ = ["Index", "IndexedTerm", "open_index"]

Longs = NDArray[np.int64]

_READ = 20_000
"""Candidates up to here are verified one by one; more by a scan, which costs less than fetching so many texts."""


class IndexedTerm:
    """A term's sorted rows, and its frequencies where the index knows them."""

    def __init__(self, index: "Index", term: Term, pattern: Pattern) -> None:
        self._index = index
        self._term = term
        self._pattern = pattern
        self._shards = [ShardTerm(shard, term, pattern) for shard in index.shards]
        self.rows: Longs = np.empty(sum(len(found.rows) for found in self._shards), dtype=np.int64)
        """Until `Index.look_up` has verified them, candidates where the pattern is not settled."""
        done = 0
        # Of millions each further copy is tens of megabytes.
        for found, shard in zip(self._shards, index.shards, strict=True):
            np.add(found.rows, shard.files.first_row, out=self.rows[done : done + len(found.rows)])
            done += len(found.rows)

    @property
    def is_settled(self) -> bool:
        """Whether postings and positions say all: no text was read."""
        return self._pattern.settled

    def tenths(self, rows: Longs) -> Longs:
        """Weighted frequencies in tenths in some sorted rows; only when settled."""
        parts = [
            found.tenths(rows[first:end] - shard.files.first_row)
            for found, shard, first, end in self._split(rows)
            if first < end
        ]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def words(self, rows: Longs) -> dict[str, int]:
        """The words it stands in, and in how many of `rows` each; most first. Only for one settled piece."""
        counts: dict[str, int] = {}
        in_runs = []
        for found, shard, first, end in self._split(rows):
            words, runs = found.words(rows[first:end] - shard.files.first_row)
            in_runs.append(runs + shard.files.first_row)
            for word, count in words.items():
                counts[word] = counts.get(word, 0) + count
        run_rows = np.concatenate(in_runs)
        if len(run_rows):
            for word, count in inside_words(self._index.corpus, self._term, run_rows).items():
                if not self._index.has_word(word):
                    counts[word] = counts.get(word, 0) + count
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    def _split(self, rows: Longs) -> list[tuple[ShardTerm, ShardIndex, int, int]]:
        edges = [(shard.files.first_row, shard.files.first_row + shard.files.rows) for shard in self._index.shards]
        cuts = [np.searchsorted(rows, edge).tolist() for edge in edges]
        return [
            (found, shard, first, end)
            for found, shard, (first, end) in zip(self._shards, self._index.shards, cuts, strict=True)
        ]


class Index:
    """The index of a snapshot that has one."""

    def __init__(self, corpus: "Corpus", shards: Sequence[ShardIndex]) -> None:
        self.corpus = corpus
        self.shards = tuple(shards)

    def look_up(self, terms: Sequence[Term]) -> list[IndexedTerm | None]:
        """Where each term occurs; `None` for one that holds no word to look up."""
        patterns = [pattern_of(term) for term in terms]
        found = [
            IndexedTerm(self, term, pattern) if pattern is not None else None
            for term, pattern in zip(terms, patterns, strict=True)
        ]
        self._verify([(term, each) for term, each in zip(terms, found, strict=True) if each and not each.is_settled])
        return found

    def _verify(self, unsettled: Sequence[tuple[Term, IndexedTerm]]) -> None:
        """Leave of candidates only the rows a term stands in; texts wanted by several terms are read once."""
        many = [(term, each) for term, each in unsettled if len(each.rows) > _READ]
        for (_, each), rows in zip(many, scan(self.corpus, [term for term, _ in many]), strict=True):
            each.rows = rows
        few = [(term, each) for term, each in unsettled if 0 < len(each.rows) <= _READ]
        if not few:
            return
        rows = np.unique(np.concatenate([each.rows for _, each in few]))
        texts = self.corpus.folded(rows)
        for term, each in few:
            holds = compile_tree(term).matches_folded
            places = np.searchsorted(rows, each.rows).tolist()
            kept = np.fromiter((holds(*texts[place]) for place in places), dtype=bool, count=len(places))
            each.rows = each.rows[kept]

    def has_word(self, word: str) -> bool:
        """Whether some message holds it as a word with spaces around it in its script."""
        return any(
            len(shard.region(number).find(word, starts=True, ends=True)) for shard in self.shards for number in (0, 1)
        )


def open_index(corpus: "Corpus", cache_bytes: int) -> Index | None:
    """The index of a corpus; `None` when it was built without one. Reads nothing yet."""
    manifest = corpus.manifest
    if len(manifest.lexicons) != len(manifest.shards):
        return None
    cache = BlockCache(cache_bytes)
    files = [[location for _, location in corpus.shard_files(name)] for name in (TERMS, POSTINGS, POSITIONS)]
    return Index(
        corpus,
        [
            ShardIndex(
                ShardFiles(terms, postings, positions, entry, shard.first_row, shard.rows), corpus.database, cache
            )
            for shard, entry, terms, postings, positions in zip(manifest.shards, manifest.lexicons, *files, strict=True)
        ],
    )
