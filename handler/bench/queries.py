"""The thirteen standard queries, chosen from the words of a corpus by the number of messages that hold them.

Decides what is asked; every system is asked the same. The words follow from the corpus alone: for each query the
word is taken whose document frequency is nearest to the share of messages named in `_TARGETS`, of equals the first in
the alphabet. Must never know how a system answers.
"""

import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import regex

from engine.model import ACTIVITY, TOMBSTONE, SourceMessage
from engine.text import fold

__all__ = ["NAMES", "TWO_LETTERS", "Choice", "StandardQuery", "choose", "searched", "words_of"]

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]+")

NAMES = (
    "rare",
    "middling",
    "common",
    "part of a word",
    "two letters, common",
    "two letters, no hit",
    "phrase",
    "AND",
    "OR",
    "NOT",
    "role",
    "time",
    "no hit",
)
"""Every standard query, in the order of the report."""

TWO_LETTERS = ("two letters, common", "two letters, no hit")
"""What a trigram index cannot answer; geometric means are told with and without them."""

_TARGETS = {"rare": 1 / 50_000, "middling": 1 / 200, "filtered": 1 / 100, "common": 1 / 10}
"""Share of messages that hold the word: 20, 5,000, 10,000 and 100,000 in a million."""

_PAIR_SHARE = 1 / 500
"""Share of messages that hold the phrase."""

_PAIR_STEP = 16
"""Pairs of words are counted in every so many-th message: all of them would not fit in memory at ten million."""


@dataclass(frozen=True, slots=True)
class StandardQuery:
    """One question. `required`, `either` and `excluded` are folded terms; one with a blank is a phrase.

    A message matches that holds all of `required`, any of `either` where there are any, and none of `excluded`.
    `months` are the first month and the first one after, as `2025-04`.
    """

    name: str
    required: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    from_role: str | None = None
    months: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        """The query in our language."""
        parts = [_spelled(term) for term in self.required]
        if self.either:
            parts.append(" OR ".join(_spelled(term) for term in self.either))
        parts += [f"NOT {_spelled(term)}" for term in self.excluded]
        return " ".join(parts)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the tools."""
        filters: dict[str, Any] = {}
        if self.from_role is not None:
            filters["from_role"] = [self.from_role]
        if self.months is not None:
            filters["after"], filters["before"] = self.months
        return {"query": self.text, **filters}


def _spelled(term: str) -> str:
    return f'"{term}"' if " " in term else term


@dataclass(frozen=True, slots=True)
class Choice:
    """The queries of a corpus, and how many messages they were chosen from."""

    messages: int
    queries: tuple[StandardQuery, ...]

    def to_object(self) -> dict[str, Any]:
        """Plain data, for keeping."""
        return asdict(self)

    @classmethod
    def from_object(cls, plain: Mapping[str, Any]) -> "Choice":
        """What `to_object` gave, also after a way through JSON."""
        return cls(plain["messages"], tuple(_query(each) for each in plain["queries"]))


def _query(plain: Mapping[str, Any]) -> StandardQuery:
    months = plain["months"]
    return StandardQuery(
        plain["name"],
        tuple(plain["required"]),
        tuple(plain["either"]),
        tuple(plain["excluded"]),
        plain["from_role"],
        None if months is None else (months[0], months[1]),
    )


def searched(message: SourceMessage) -> bool:
    """Whether a search without `kind` looks at it."""
    return message.kind not in (ACTIVITY, TOMBSTONE)


def words_of(folded: str) -> list[str]:
    """The words of a folded text in order."""
    return _WORD.findall(folded)


@dataclass(slots=True)
class _Tally:
    """Messages that hold each word, and each pair of neighbours with a single blank between them."""

    messages: int
    words: Counter[str]
    pairs: Counter[tuple[str, str]]
    parted: set[tuple[str, str]]
    """Pairs that occur with something else between them: systems that know words only would count those too."""


def choose(messages: Iterable[SourceMessage]) -> Choice:
    """Read a corpus once and choose.

    Raises:
        ValueError: the corpus is too small to hold thirteen different questions.
    """
    tally = _tally(fold(message.body) for message in messages if searched(message))
    plain = {word: n for word, n in tally.words.items() if word.isascii() and word.isalpha() and len(word) >= 5}
    middling = _nearest(plain, tally.messages * _TARGETS["middling"], 4)
    filtered = _nearest(plain, tally.messages * _TARGETS["filtered"], 1)[0]
    common = _nearest(plain, tally.messages * _TARGETS["common"], 1)[0]
    rare = _nearest(plain, max(3.0, tally.messages * _TARGETS["rare"]), 1)[0]
    phrase, both = _pairs(tally)
    letters = _two_letters(tally.words)
    queries = (
        StandardQuery("rare", (rare,)),
        StandardQuery("middling", (middling[0],)),
        StandardQuery("common", (common,)),
        StandardQuery("part of a word", (_inner(middling[1], tally.words),)),
        StandardQuery("two letters, common", (max(letters, key=lambda pair: (letters[pair], pair)),)),
        StandardQuery("two letters, no hit", (min(pair for pair in letters if not letters[pair]),)),
        StandardQuery("phrase", (" ".join(phrase),)),
        StandardQuery("AND", both),
        StandardQuery("OR", either=(middling[2], middling[3])),
        StandardQuery("NOT", (common,), excluded=(middling[2],)),
        StandardQuery("role", (filtered,), from_role="client"),
        StandardQuery("time", (filtered,), months=("2025-04", "2025-07")),
        StandardQuery("no hit", (_absent(rare, tally.words),)),
    )
    return Choice(tally.messages, queries)


def _tally(texts: Iterable[str]) -> _Tally:
    tally = _Tally(0, Counter(), Counter(), set())
    for number, text in enumerate(texts):
        tally.messages += 1
        words = words_of(text)
        tally.words.update(set(words))
        if number % _PAIR_STEP == 0:
            neighbours = set(_neighbours(text))
            tally.pairs.update({(left, right) for left, gap, right in neighbours if gap == " "})
            tally.parted.update((left, right) for left, gap, right in neighbours if gap != " ")
    return tally


def _neighbours(text: str) -> Iterator[tuple[str, str, str]]:
    found = list(_WORD.finditer(text))
    for left, right in pairwise(found):
        yield left[0], text[left.end() : right.start()], right[0]


def _nearest(frequencies: Mapping[str, int], target: float, count: int) -> list[str]:
    if len(frequencies) < count:
        raise ValueError("too few words")
    return sorted(frequencies, key=lambda word: (abs(frequencies[word] - target), word))[:count]


def _pairs(tally: _Tally) -> tuple[tuple[str, str], tuple[str, str]]:
    """A phrase, and two further words that stand together somewhere."""
    target = tally.messages * _PAIR_SHARE / _PAIR_STEP
    plain = {
        pair: n
        for pair, n in tally.pairs.items()
        if pair not in tally.parted and all(word.isascii() and word.isalpha() and len(word) >= 4 for word in pair)
    }
    first, *others = sorted(plain, key=lambda pair: (abs(plain[pair] - target), pair))
    second = next(pair for pair in others if not set(pair) & set(first))
    return first, second


def _inner(word: str, words: Mapping[str, int]) -> str:
    """A piece from the middle of the word, of three letters or more, that is no word itself."""
    pieces = [word[1:end] for end in range(len(word), 3, -1)] + [word[start:-1] for start in range(2, len(word) - 3)]
    return next((piece for piece in pieces if piece not in words), word[1:])


def _two_letters(words: Mapping[str, int]) -> dict[str, int]:
    """For each two letters the messages that hold them, each word counted by itself."""
    counts = {a + b: 0 for a in string.ascii_lowercase for b in string.ascii_lowercase}
    for word, messages in words.items():
        for pair in {word[i : i + 2] for i in range(len(word) - 1)}:
            if pair in counts:
                counts[pair] += messages
    return counts


def _absent(word: str, words: Mapping[str, int]) -> str:
    """Letters that no word holds."""
    candidate = word[::-1]
    while any(candidate in each for each in words):
        candidate += "q"
    return candidate
