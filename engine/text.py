"""Folding: what two texts must share to be the same to a searcher. One function, at build and at query time.

Must never know what is searched or shown.
"""

import unicodedata

import regex

__all__ = ["fold"]

_MARKED = regex.compile(r"([\p{Latin}\p{Greek}])\p{M}+")


def fold(text: str) -> str:
    """NFKC, casefold, no combining marks on Latin and Greek letters, ё to е; й and every other mark stay.

    Idempotent. The length may change in either direction.
    """
    if text.isascii():
        return text.lower()
    out = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    out = _MARKED.sub(r"\1", unicodedata.normalize("NFD", out))
    return unicodedata.normalize("NFC", out).replace("ё", "е")
