"""How a query is spelled: its operators, its word characters, and what a term may look like without quotes.

The tokens are read by these rules and the trees printed by them, so that what is printed reads back the same.
Must never know trees, limits or messages.
"""

import re

import regex

__all__ = [
    "OPERATORS",
    "PARTS",
    "PIECE",
    "asks_whole",
    "closing",
    "in_quotes",
    "reads_bare",
    "starred",
]

OPERATORS = frozenset({"AND", "OR", "NOT"})
"""Pieces that join terms: in capitals, standing alone."""

PARTS = ("topic:", "body:")
"""What confines a term or group to one part of a message: in lower case, at the start of a term."""

PIECE = re.compile(r"\S+")
"""A run without blanks; blank is what `str.isspace` says, and the standard library's `\\s` agrees."""

_WHOLE = regex.compile(r'=[\p{L}\p{M}\p{N}_"]')
_WORD_CHARACTER = regex.compile(r"[\p{L}\p{M}\p{N}_]")
_STARRED = regex.compile(r"[\p{L}\p{M}\p{N}_](\*+)\Z")


def asks_whole(text: str, at: int = 0) -> bool:
    """True when the character at `at` is a `=` before a word character or a quote; `=>` and `===` are not."""
    return _WHOLE.match(text, at) is not None


def starred(word: str) -> int:
    """How many stars end `word` right after a word character: 2 for `go**`, 0 for `*.go*)` and `a->*`."""
    found = _STARRED.search(word)
    return len(found.group(1)) if found else 0


def closing(word: str) -> int:
    """How many `)` at the end of `word` close groups: those that no `(` inside the word calls for."""
    at_end = len(word) - len(word.rstrip(")"))
    return max(0, min(at_end, word.count(")") - word.count("(")))


def in_quotes(text: str) -> str:
    """`text` as a phrase, each quote in it doubled."""
    return '"' + text.replace('"', '""') + '"'


def reads_bare(text: str, *, whole: bool, confined: bool) -> bool:
    """True when `text` without quotes reads as itself, also right before a `)` that closes a group.

    `whole` when a `=` will stand before it, `confined` when a `topic:` or `body:` will.
    """
    if PIECE.fullmatch(text) is None or starred(text):
        return False
    if closing(text) or text.count("(") > text.count(")"):
        return False
    if whole:
        return _WORD_CHARACTER.match(text) is not None
    if text.startswith(("(", '"', *PARTS)) or asks_whole(text):
        return False
    return confined or text not in OPERATORS
