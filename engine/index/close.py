"""The words of a snapshot that a person may have meant by a term: its forms, its other spellings, a few edits from it.

Decides which words are close, how they are counted among visible rows, and in which order they come. Which words are
looked at depends on the term alone, so that what is out of sight changes neither presence nor order; in how many rows
of the whole snapshot a word occurs only saves work. Words that a term matches inside are not close: it finds them.
Must never know filters, texts or a query's other terms.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.index.near import MOST_CHARS, Shapes
from engine.index.pieces import pattern_of
from engine.index.rows import intersected, unique
from engine.index.search import Index, IndexedTerm
from engine.index.shard import WORDS, ShardIndex
from engine.match import compile_tree
from engine.query.spellings import is_unspaced, spellings
from engine.query.stems import forms_among, stems_of
from engine.query.tree import Term, canonical
from engine.text import fold, is_word_char

if TYPE_CHECKING:
    from engine.snapshot.open import Corpus

__all__ = ["CloseWords", "edits_allowed"]

Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]

_REMEMBERED = 256
"""Terms whose close words are kept: a talk with an agent asks for the same words again."""

_VERIFIED = 2_000
"""Messages of the scope whose texts are read for one spelling with signs in it; where there are more it is left out."""


@dataclass(slots=True)
class _Word:
    """A close word: the regions it stands in, as (shard, region, number), and rows of all those together at most.

    `kin`: it is a form or another spelling, not merely some edits away.
    """

    text: str
    kin: bool = False
    places: list[tuple[int, int, int]] = field(default_factory=list)
    most: int = 0

    def add(self, place: int, shard: ShardIndex, region: int, number: int) -> None:
        """It stands in one more region."""
        self.places.append((place, region, number))
        self.most += int(shard.document_frequencies(region, np.array([number]))[0])


class CloseWords:
    """The close words of a snapshot that has an index; safe to share between threads."""

    def __init__(self, corpus: "Corpus", index: Index) -> None:
        self._corpus = corpus
        self._index = index
        self._shapes: dict[tuple[int, int], Shapes] = {}
        self._known: OrderedDict[Term, tuple[_Word, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def counted(self, term: Term, scope: Mask, most: int) -> dict[str, int]:
        """Close words with the messages of a scope that hold each, forms and spellings first, then most first.

        At most so many; none that no message of the scope holds. Two words are written as a query finds them.
        """
        kin = self._best([word for word in self._words(term) if word.kin], scope, most)
        phrases = self._phrases(term, scope)
        first = sorted([*kin, *phrases], key=_order)[:most]
        rest = self._best([word for word in self._words(term) if not word.kin], scope, most - len(first))
        return dict([*first, *rest])

    def _best(self, words: Sequence[_Word], scope: Mask, most: int) -> list[tuple[str, int]]:
        """Those in most rows of the scope. Whoever is in too few rows of all to be among them is not counted."""
        found: list[tuple[str, int]] = []
        waiting = sorted(words, key=lambda word: (-word.most, word.text))
        while waiting and most > 0:
            if len(found) == most and waiting[0].most < found[-1][1]:
                break
            batch, waiting = waiting[: 2 * most], waiting[2 * most :]
            counts = zip(batch, self._counts(batch, scope), strict=True)
            found = sorted([*found, *((word.text, count) for word, count in counts if count)], key=_order)[:most]
        return found

    def _counts(self, words: Sequence[_Word], scope: Mask) -> list[int]:
        """In how many rows of the scope each word occurs, in body or topic."""
        rows: list[list[Longs]] = [[] for _ in words]
        wanted: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for at, word in enumerate(words):
            for place, region, number in word.places:
                wanted.setdefault((place, region), []).append((number, at))
        for (place, region), pairs in wanted.items():
            shard = self._index.shards[place]
            pairs.sort()
            numbers = np.array([number for number, _ in pairs], dtype=np.int64)
            found = shard.rows_of(region, numbers).astype(np.int64) + shard.files.first_row
            ends = np.cumsum(shard.document_frequencies(region, numbers))
            for (_, at), part in zip(pairs, np.split(found, ends[:-1]), strict=True):
                rows[at].append(part[scope[part]])
        # A word may stand in both parts of one message.
        return [len(parts[0]) if len(parts) == 1 else len(unique(np.concatenate(parts), len(scope))) for parts in rows]

    def _phrases(self, term: Term, scope: Mask) -> Iterator[tuple[str, int]]:
        """Other spellings that are no single word of the lexicon, with their counts."""
        found = spellings(term.text)
        parted = [left + sign + right for left, right in self._meeting(term, found.halves, scope) for sign in " -"]
        for text in (*found.phrases, *found.runs, *parted):
            other = Term(text, whole=not found.runs, part=term.part)
            count = 0 if _matches(term, text) else self._held(other, scope)
            if count:
                yield canonical(Term(text)), count

    def _held(self, term: Term, scope: Mask) -> int:
        """In how many rows of the scope a term occurs; 0 where too many texts would have to be read to tell."""
        pattern = pattern_of(term)
        if pattern is None:
            return 0
        rows = IndexedTerm(self._index, term, pattern).rows
        rows = rows[scope[rows]]
        if pattern.settled or not len(rows):
            return len(rows)
        if len(rows) > _VERIFIED:
            return 0
        holds = compile_tree(term).matches_folded
        return sum(holds(*texts) for texts in self._corpus.folded(rows))

    def _meeting(self, term: Term, halves: Sequence[tuple[str, str]], scope: Mask) -> list[tuple[str, str]]:
        """Those pairs of words that some message of the scope holds both."""
        places: dict[str, _Word] = {}
        for place, shard, region in self._regions(term):
            numbers = self._shapes_of(shard, region).places(half for pair in halves for half in pair)
            for half, number in numbers.items():
                places.setdefault(half, _Word(half)).add(place, shard, region, number)

        @cache
        def rows(half: str) -> Longs:
            parts = [self._rows(place, region, number) for place, region, number in places[half].places]
            return unique(np.concatenate([part[scope[part]] for part in parts]), len(scope))

        def meet(pair: tuple[str, str]) -> bool:
            if not all(half in places for half in pair):
                return False
            # A frequent word is read only where the other one is in the scope at all.
            rare, frequent = sorted(pair, key=lambda half: places[half].most)
            return len(rows(rare)) > 0 and len(intersected(rows(rare), rows(frequent), len(scope))) > 0

        return [pair for pair in halves if meet(pair)]

    def _rows(self, place: int, region: int, number: int) -> Longs:
        shard = self._index.shards[place]
        return shard.rows_of(region, np.array([number])).astype(np.int64) + shard.files.first_row

    def _words(self, term: Term) -> tuple[_Word, ...]:
        """Every close word of the lexicon, whoever may see it."""
        with self._lock:
            if term in self._known:
                self._known.move_to_end(term)
                return self._known[term]
        made = tuple(self._find(term).values())
        with self._lock:
            self._known[term] = made
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return made

    def _find(self, term: Term) -> dict[str, _Word]:
        folded = fold(term.text)
        out: dict[str, _Word] = {}
        spelled = spellings(term.text).words
        is_word = all(map(is_word_char, folded)) and not is_unspaced(folded) and len(folded) <= MOST_CHARS
        stems = stems_of(term.text, folded) if is_word else []
        edits = edits_allowed(folded) if is_word else 0
        for place, shard, number in self._regions(term):
            region, shapes = shard.region(number), self._shapes_of(shard, number)
            found: dict[str, tuple[int, bool]] = {}
            if edits:
                for at in shapes.near(folded, edits).tolist():
                    word = region.term(at)
                    if _digits(word) == _digits(folded):
                        found[word] = (at, False)
            for stem in stems:
                places = {region.term(at): at for at in region.find(stem.head, starts=True).tolist()}
                found |= {word: (places[word], True) for word in forms_among(stem, places)}
            found |= {word: (at, True) for word, at in shapes.places(spelled).items()}
            for word, (at, kin) in found.items():
                if not _matches(term, word):
                    made = out.setdefault(word, _Word(word))
                    made.kin |= kin
                    made.add(place, shard, number, at)
        return out

    def _regions(self, term: Term) -> Iterator[tuple[int, ShardIndex, int]]:
        """The regions a term is asked in: number of the shard, the shard, number of the region."""
        topics = {"any": (0, 1), "body": (0,), "topic": (1,)}[term.part]
        for place, shard in enumerate(self._index.shards):
            for topic in topics:
                yield place, shard, WORDS[topic]

    def _shapes_of(self, shard: ShardIndex, region: int) -> Shapes:
        key = (shard.files.first_row, region)
        if key not in self._shapes:
            # Two at once may both make them.
            self._shapes[key] = Shapes(shard.region(region))
        return self._shapes[key]


def edits_allowed(folded: str) -> int:
    """Edits that a close word may be away: none from under four characters or without a letter, two from eight up."""
    if len(folded) < 4 or not any(map(str.isalpha, folded)):
        return 0
    return 1 if len(folded) < 8 else 2


def _matches(term: Term, text: str) -> bool:
    """Whether a term finds this word or phrase already."""
    folded = fold(term.text)
    return text == folded if term.whole else folded in text


def _digits(word: str) -> str:
    """Another number is another thing, not another spelling."""
    return "".join(filter(str.isdigit, word))


def _order(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]
