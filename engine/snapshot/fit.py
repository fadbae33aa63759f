"""Texts and ids of sources made fit to be stored.

Decides what is replaced in a text that no file could keep, and what an id may look like. Must never know columns.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import regex

from engine.snapshot.letters import PAD, Bytes, raw_of

__all__ = ["clean", "cleaned", "identifier", "identifiers"]

_ID_CHARS = 120
"""Longest part of an id: it stands in every line that shows the message."""

_PLAIN_ID = regex.compile(r"[\p{L}\p{N}\p{P}\p{S}--\[\]⟦⟧⏎]+", regex.V1)
_ASCII_NOT_PLAIN = regex.compile(r"[\x00-\x20\[\]\x7F]")
_NOT_PLAIN = regex.compile(r"[^\p{L}\p{N}\p{P}\p{S}]|[\[\]⟦⟧⏎]", regex.V1)

_SURROGATE = regex.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """NUL cannot be kept in Parquet by every reader, a lone surrogate in none: both become U+FFFD."""
    return _SURROGATE.sub("\ufffd", text.replace("\0", "\ufffd"))


def cleaned(texts: Sequence[str]) -> tuple[Sequence[str], Bytes]:
    """The texts, clean, and what `raw_of` makes of them."""
    try:
        raw = raw_of(texts)
    except UnicodeEncodeError:
        return _each_cleaned(texts)
    # One NUL stands behind each text, and others only behind the last.
    within = np.count_nonzero(raw[:-PAD] == 0) - len(texts)
    return _each_cleaned(texts) if within else (texts, raw)


def _each_cleaned(texts: Sequence[str]) -> tuple[Sequence[str], Bytes]:
    each = list(map(clean, texts))
    return each, raw_of(each)


def identifiers(texts: Sequence[str]) -> Sequence[str]:
    """Each as `identifier` makes it."""
    whole, sizes = "".join(texts), list(map(len, texts))
    short = min(sizes, default=1) > 0 and max(sizes, default=1) <= _ID_CHARS
    plain = short and whole.isascii() and not _ASCII_NOT_PLAIN.search(whole)
    return texts if plain else list(map(identifier, texts))


def identifier(text: str) -> str:
    """An id that can be printed, copied and passed back: no blanks, brackets or invisible characters, and short.

    What had to change is told apart by a digest of what it was.
    """
    if len(text) <= _ID_CHARS and _PLAIN_ID.fullmatch(text):
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{_NOT_PLAIN.sub('_', text)[: _ID_CHARS - 17]}~{digest}"
