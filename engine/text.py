"""What a text is to a searcher (`fold`, its words), and what of it may be shown (`display`, `one_line`).

`fold` is what two texts must share to be the same: one function, at build and at query time. `display`
decides which characters reach a reader. Must never know what is searched, nor where in a text a match lies.
"""

import re
import unicodedata
from functools import lru_cache

import regex

__all__ = [
    "LINE_MARK",
    "MARK_END",
    "MARK_START",
    "UNSPACED",
    "display",
    "fold",
    "is_word_char",
    "one_line",
    "word_count",
]

MARK_START, MARK_END = "⟦", "⟧"
"""What stands around a match. In a message's own text `display` shows them as `[[` and `]]`."""

LINE_MARK = "⏎"
"""Stands for a newline in a text on one line. In a message's own text it is shown as a blank."""

UNSPACED = "".join(
    rf"\p{{{script}}}"
    for script in (
        *("Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Thai", "Lao", "Khmer", "Myanmar"),
        *("Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet", "Javanese", "Balinese"),
    )
)
"""Scripts that set no spaces between words, as the inside of a class of a regular expression."""

_LETTER = regex.compile(r"[\p{Latin}\p{Greek}]")
_MARK = regex.compile(r"\p{M}")
_MARKED_LETTER = regex.compile(r"([\p{Latin}\p{Greek}])\p{M}+")
_MARKED_IO = regex.compile(r"ё(\p{M}+)")

_BASES = {
    char: decomposed[0]
    for code in (*range(0xC0, 0x400), *range(0x1E00, 0x2000))
    for char in (chr(code),)
    for decomposed in (unicodedata.normalize("NFD", char),)
    if len(decomposed) > 1 and _LETTER.match(decomposed)
}
"""Every Latin and Greek letter that holds a mark, with its bare letter. None lies outside these blocks."""


_PLAIN = (
    "\x00-\xbf\u200c\u200d\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2190-\u23ff\u2600-\u27bf\u3001-\u3029"
    "а-яѐђ-џא-תء-يก-ะเ-ๆぁ-ゖァ-ヺー一-鿿가-힣\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff"
)
"""Ranges of what many texts are made of and nothing need be done to: neither a mark nor a letter with a bare one."""

_LOOKED_AT = re.compile(f"[^{_PLAIN}]")


def fold(text: str) -> str:
    """NFKC, casefold, no combining marks on Latin and Greek letters, ё to е; й and every other mark stay.

    Idempotent, and never empty for a text that is not. The length may change in either direction.
    """
    if text.isascii():
        return text.lower()
    # Casefolding can undo a normal form (U+0345 becomes a letter), hence the second pass.
    out = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    marked = False
    # A text has few distinct characters: replacing each is several times faster than decomposing all.
    for char in set(_LOOKED_AT.findall(out)):
        base = _BASES.get(char)
        if base is not None:
            out = out.replace(char, base)
        elif _is_mark(char):
            marked = True
    if marked:
        out = _MARKED_LETTER.sub(r"\1", out)
        out = _MARKED_IO.sub(_marked_ie, out)
    return out.replace("ё", "е")


@lru_cache(maxsize=4_096)
def _is_mark(char: str) -> bool:
    return _MARK.match(char) is not None


def _marked_ie(found: regex.Match[str]) -> str:
    # A second diaeresis would join the bare е and make it ё again; other marks may join it (ӗ) and must.
    return unicodedata.normalize("NFC", "е" + found[1].replace("\u0308", ""))


_WORD_CHAR = regex.compile(r"[\p{L}\p{M}\p{N}_]")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]+")
_ASCII_WORD = re.compile(r"\w+", re.ASCII)


@lru_cache(maxsize=4_096)
def is_word_char(char: str) -> bool:
    """True for a letter, mark or number of any script, and for `_`. `char` is one character."""
    return _WORD_CHAR.match(char) is not None


def word_count(text: str) -> int:
    """Number of words: maximal runs of word characters."""
    return len((_ASCII_WORD if text.isascii() else _WORD).findall(text))


_SELECTORS = r"\uFE00-\uFE0F\U000E0100-\U000E01EF\u180B-\u180D\u180F"
_DROPPED = (
    r"[[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]"
    # Arabic and Syriac number signs are format characters with a shape.
    r"--[\n\t\r\x0B\x0C\x85\u200C\u200D\p{Prepended_Concatenation_Mark}" + _SELECTORS + "]]++"
)
_NOT_AS_IS = regex.compile(
    # A flag's tags: a region behind an emoji, and its end. Any other tag is hidden text and dropped.
    r"(?<=\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]?)"
    r"(?P<flag>[\U000E0030-\U000E0039\U000E0061-\U000E007A]{1,6}+\U000E007F)"
    r"|(?P<line>\r\n?|[\x0B\x0C\x85\u2028\u2029])"
    rf"|[{MARK_START}{MARK_END}{LINE_MARK}]|{_DROPPED}"
    # One selector chooses a shape; a run of them, or one on nothing, only carries hidden bytes.
    rf"|(?<![^\n\t\r\u2028\u2029\u200C\u200D\p{{Cc}}\p{{Cf}}\p{{Cs}}{_SELECTORS}])[{_SELECTORS}]",
    regex.V1,
)
_ASCII_NOT_AS_IS = re.compile(r"[\x00-\x08\x0B-\x1F\x7F]")
_SHOWN_AS = {MARK_START: "[[", MARK_END: "]]", LINE_MARK: " "}


def display(text: str) -> str:
    """What may be shown of `text`: everything visible, newline, tab, joiners, variation selectors, flag tags.

    Every kind of line break becomes a newline. Other control characters, bidi controls, invisible ones
    and lone surrogates go; our own marks and line sign are disarmed. Separable at grapheme borders: pieces
    of a text cut there, displayed one by one, make the displayed text. The result encodes to UTF-8.
    """
    if text.isascii() and not _ASCII_NOT_AS_IS.search(text):
        return text
    return _NOT_AS_IS.sub(_shown, text)


def _shown(found: regex.Match[str]) -> str:
    if found.lastgroup == "flag":
        return found[0]
    return "\n" if found.lastgroup == "line" else _SHOWN_AS.get(found[0], "")


_LINE_BREAK = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def one_line(text: str) -> str:
    """A displayed text on one line: newlines as ` ⏎ `, and nothing left that may break a line."""
    return _LINE_BREAK.sub(f" {LINE_MARK} ", text)
