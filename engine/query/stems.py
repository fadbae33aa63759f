"""Whether two words are forms of one: суббота, субботу; running, runs. By the Snowball algorithms.

Decides which languages a word may be of, by its script and by the marks it was written with. Words are folded. Must
never know a corpus.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from threading import Lock
from typing import Protocol

import regex

__all__ = ["Stem", "forms_among", "load_stemmers", "stems_of"]

_BY_SCRIPT = (
    (regex.compile(r"\p{Latin}+"), "english"),
    (regex.compile(r"\p{Cyrillic}+"), "russian"),
    (regex.compile(r"\p{Greek}+"), "greek"),
    (regex.compile(r"[\p{Arabic}\p{M}]+"), "arabic"),
    (regex.compile(r"\p{Armenian}+"), "armenian"),
    (regex.compile(r"[\p{Devanagari}\p{M}]+"), "hindi"),
    (regex.compile(r"[\p{Tamil}\p{M}]+"), "tamil"),
)
"""The first language of each script: a word in Latin letters without marks is taken for English."""

_BY_MARKS = (
    ("äöüß", "german"),
    ("åäö", "swedish"),
    ("æøå", "danish"),
    ("æøå", "norwegian"),
    ("éèàùâêîôûç", "french"),
    ("ãõçáéíóú", "portuguese"),
    ("ñáéíóú", "spanish"),
    ("àèéìòù", "italian"),
    ("ąćęłńśźż", "polish"),
    ("ğışçöü", "turkish"),
    ("áéíóöőúüű", "hungarian"),
    ("äö", "finnish"),
    ("ăâîșț", "romanian"),
)
"""Letters as they were written, and a language that has them."""

_SHORTEST = 3
"""Characters that all forms must begin with: two letters begin half the lexicon."""
_LONGEST_ENDING = 5
"""Characters of a form beyond what all begin with; longer endings make another word more often than a form."""


@dataclass(frozen=True, slots=True)
class Stem:
    """A stem in a language; its forms begin with `head` and have at most `longest` characters."""

    language: str
    text: str
    head: str
    longest: int


def stems_of(written: str, folded: str) -> list[Stem]:
    """The stems of a word, in each language it may be of; none where its forms would begin with too little."""
    first = next((language for script, language in _BY_SCRIPT if script.fullmatch(folded)), None)
    if first is None:
        return []
    marked = set(written.casefold())
    languages = [first, *(language for letters, language in _BY_MARKS if not marked.isdisjoint(letters))]
    stems = [_stem(language, folded) for language in languages]
    return [stem for stem in stems if len(stem.head) >= _SHORTEST]


def forms_among(stem: Stem, words: Iterable[str]) -> list[str]:
    """Those of some words that begin with the stem's head that are forms of it."""
    return [word for word in words if len(word) <= stem.longest and _stemmed(stem.language, word) == stem.text]


def _stem(language: str, word: str) -> Stem:
    text = _stemmed(language, word)
    # English makes y an i: of happy and happier the stem is happi.
    bare = text.removesuffix("i") if language == "english" else text
    head = word[
        : next((at for at, (one, other) in enumerate(zip(word, bare, strict=False)) if one != other), len(bare))
    ]
    return Stem(language, text, head, len(head) + _LONGEST_ENDING)


def load_stemmers() -> None:
    """Load what stems are made with, where the time is not a caller's."""
    _stemmer("english")


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the library's name


@cache
def _stemmer(language: str) -> _Stemmer:
    # All languages are loaded at once, which takes longer than a count: only who asks for a rare word waits for it.
    made: _Stemmer = import_module("snowballstemmer").stemmer(language)
    return made


_LOCK = Lock()
"""A stemmer holds the word it works on."""


@lru_cache(maxsize=16_384)
def _stemmed(language: str, word: str) -> str:
    with _LOCK:
        return _stemmer(language).stemWord(word)
