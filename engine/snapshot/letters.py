"""What each character is to the index: part of a word or not, of a script that sets no spaces, of which script.

Asked of the database once for each character met, so that words are split as its own expressions split them when a
scan answers. Texts are arrays of bytes, UTF-8, so that a million of them cost a few passes of NumPy. Must never know
what becomes of a word.
"""

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.snapshot.format import SCRIPTS
from engine.snapshot.statements import Tables
from engine.text import UNSPACED as UNSPACED_LETTERS

__all__ = ["PAD", "UNSPACED", "WORD", "Bytes", "Letters", "code_points", "raw_of"]

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]

WORD, UNSPACED = 1, 2
"""Kinds of characters; 0 is all that stands between words."""

_UNKNOWN = 255
_CODE_POINTS = 0x110000

_WORD_CHAR = r"[\p{L}\p{M}\p{N}_]"
"""RE2's own `\\w` is ASCII only."""

_ASCII_KINDS = bytes(WORD if code < 128 and (chr(code).isalnum() or chr(code) == "_") else 0 for code in range(256))

_FIRST_LEAD = 0xC0
"""Bytes from here on begin a character of several."""

PAD = 8
"""Zeros behind the last text: eight bytes can be read from any place in it."""


def raw_of(texts: Sequence[str]) -> Bytes:
    """The bytes of some texts without NUL, each with a NUL behind it, and eight more at the end."""
    return np.frombuffer("\0".join([*texts, "\0" * PAD]).encode(), dtype=np.uint8)


def code_points(raw: Bytes, leads: Longs) -> NDArray[np.uint32]:
    """The characters that begin at these bytes (RFC 3629)."""
    points = raw[leads].astype(np.uint32)
    first = points.copy()

    def tail(place: Longs, offset: int) -> NDArray[np.uint32]:
        return raw[leads[place] + offset].astype(np.uint32) & np.uint32(0x3F)

    two = np.flatnonzero(first >= 0xC0)
    points[two] = (first[two] & np.uint32(0x1F)) << np.uint32(6) | tail(two, 1)
    three = np.flatnonzero(first >= 0xE0)
    points[three] = (first[three] & np.uint32(0x0F)) << np.uint32(12) | tail(three, 1) << np.uint32(6) | tail(three, 2)
    four = np.flatnonzero(first >= 0xF0)
    points[four] = (
        (first[four] & np.uint32(0x07)) << np.uint32(18)
        | tail(four, 1) << np.uint32(12)
        | tail(four, 2) << np.uint32(6)
        | tail(four, 3)
    )
    return points


class Letters:
    """Kinds and scripts of characters; safe to share between threads.

    `ask` runs a statement over a table called `given`.
    """

    def __init__(self, ask: Callable[[str, Tables], Tables]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._kinds = np.full(_CODE_POINTS, _UNKNOWN, dtype=np.uint8)
        self._scripts = np.zeros(_CODE_POINTS, dtype=np.uint16)

    def kinds(self, raw: Bytes) -> Bytes:
        """The kind of every byte of some texts: that of its character."""
        kinds = np.frombuffer(bytearray(raw.tobytes().translate(_ASCII_KINDS)), dtype=np.uint8)
        leads = np.flatnonzero(raw >= _FIRST_LEAD)
        if len(leads):
            points = code_points(raw, leads)
            found = self._kinds[points]
            if (found == _UNKNOWN).any():
                self._learn(points)
                found = self._kinds[points]
            first = raw[leads]
            kinds[leads] = found
            for offset, least in ((1, 0xC0), (2, 0xE0), (3, 0xF0)):
                reach = first >= least
                kinds[leads[reach] + offset] = found[reach]
        return kinds

    def scripts(self, raw: Bytes, texts: int) -> NDArray[np.uint16]:
        """For each of so many texts the bits of the scripts it has characters of, as `SCRIPTS` numbers them."""
        out = np.zeros(texts, dtype=np.uint16)
        leads = np.flatnonzero(raw >= _FIRST_LEAD)
        if len(leads):
            points = code_points(raw, leads)
            self._learn(points)
            owners = np.searchsorted(np.flatnonzero(raw == 0), leads)
            heads = np.flatnonzero(np.diff(owners, prepend=-1))
            out[owners[heads]] = np.bitwise_or.reduceat(self._scripts[points], heads)
        return out

    def _learn(self, points: NDArray[np.uint32]) -> None:
        with self._lock:
            fresh = np.unique(points[self._kinds[points] == _UNKNOWN])
            if not len(fresh):
                return
            scripts = " | ".join(
                f"CASE WHEN regexp_matches(letter, '{pattern}') THEN {1 << bit} ELSE 0 END"
                for bit, (_, pattern) in enumerate(SCRIPTS)
            )
            select = f"""
                SELECT CASE WHEN NOT regexp_matches(letter, '{_WORD_CHAR}') THEN 0
                            WHEN regexp_matches(letter, '[{UNSPACED_LETTERS}]') THEN {UNSPACED} ELSE {WORD} END
                       AS kind, {scripts} AS scripts
                FROM (SELECT chr(point) AS letter FROM given)
            """
            found = self._ask(select, {"point": fresh.astype(np.int32)})
            self._scripts[fresh] = found["scripts"]
            self._kinds[fresh] = found["kind"]
