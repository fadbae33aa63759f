"""Other spellings of a term that folding does not make one: e-mail, email; colour, color; müller, mueller.

Decides which spellings are the same word to those who write it, by rules of orthographies alone. A rule may make what
nobody writes: whether a spelling exists is for the corpus to say. Must never know a corpus.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from unicodedata import normalize

import regex

from engine.text import UNSPACED, fold, is_word_char

__all__ = ["Spellings", "is_unspaced", "spellings"]

_MOST_CHARS = 32
"""A longer term is no word, and its spellings would be many: there are some two for each character."""


@dataclass(frozen=True, slots=True)
class Spellings:
    """Folded. `words` are one word each; `phrases` several, or with signs in them; `runs` of scripts without spaces.

    `halves`: where a word may be parted, by a blank or a hyphen.
    """

    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    halves: tuple[tuple[str, str], ...] = ()


_UNSPACED = regex.compile(f"[{UNSPACED}]")


def is_unspaced(folded: str) -> bool:
    """Whether a letter of a script without spaces is among these: such a run is no word of its own."""
    return _UNSPACED.search(folded) is not None


_STRAIGHT, _CURLY = "'", "’"
_HYPHENS = ("-", "‐", "–")
_SEPARATORS = re.compile("|".join([" ", _STRAIGHT, _CURLY, *_HYPHENS]))


def spellings(text: str) -> Spellings:
    """The other spellings of a term's text, as it was written: marks that folding drops say how to spell without."""
    folded = fold(text)
    if len(folded) > _MOST_CHARS:
        return Spellings()
    pieces = re.split(r"[- ‐‑–'’]", folded)
    if not all(pieces) or not all(is_word_char(char) for piece in pieces for char in piece):
        return Spellings()
    if is_unspaced(folded):
        return Spellings(runs=_others(folded, _kana(folded)) if len(pieces) == 1 else ())
    if len(pieces) > 1:
        return _of_pieces(folded, pieces)
    parts = tuple(
        (folded[:at], folded[at:])
        for at in range(1, len(folded))
        if _is_half(folded[:at]) and _is_half(folded[at:]) and not folded.isdigit()
    )
    return Spellings(_others(folded, (*_spelled_out(text), *_rewritten(folded))), halves=parts)


_PARTICLES = frozenset(
    [
        "e",
        "i",
        "x",
        "t",
        "a",
        "re",
        "co",
        "de",
        "bi",
        "an",
        "in",
        "on",
        "up",
        "by",
        "to",
        "of",
        "no",
        "so",
        "go",
        "un",
        "по",
        "во",
        "из",
        "не",
        "на",
    ]
)


def _is_half(part: str) -> bool:
    """Whether it may stand alone: three letters, or one of the short words that others are joined to."""
    return len(part) >= 3 or part in _PARTICLES


def _of_pieces(folded: str, pieces: list[str]) -> Spellings:
    """`e-mail` and `"e mail"`; `email`; and an apostrophe of the other shape."""
    joined = "".join(pieces)
    if _STRAIGHT in folded or _CURLY in folded:
        straight = folded.replace(_CURLY, _STRAIGHT)
        return Spellings((joined,), _others(folded, (straight, straight.replace(_STRAIGHT, _CURLY))))
    return Spellings((joined,), _others(folded, (sign.join(pieces) for sign in (" ", *_HYPHENS))))


def _others(folded: str, found: Iterable[str]) -> tuple[str, ...]:
    """Those that are another, each once."""
    return tuple(other for other in dict.fromkeys(found) if other and other != folded)


_DIGRAPHS = str.maketrans(
    {
        "ä": "ae",
        "ö": "oe",
        "ü": "ue",
        "å": "aa",
        "æ": "ae",
        "ø": "oe",
        "œ": "oe",
        "Ä": "ae",
        "Ö": "oe",
        "Ü": "ue",
        "Å": "aa",
        "Æ": "ae",
        "Ø": "oe",
        "Œ": "oe",
        "ẞ": "ss",
    }
)
"""How German and the Scandinavian languages are written on a keyboard without their letters."""


def _spelled_out(text: str) -> Iterator[str]:
    yield fold(normalize("NFC", text).translate(_DIGRAPHS))


@dataclass(frozen=True, slots=True)
class _Rule:
    """Two spellings of the same, where the one stands between what is looked for `before` and `behind` it."""

    one: str
    other: str
    before: str = ""
    behind: str = ""

    def both_ways(self) -> Iterator[tuple[re.Pattern[str], str]]:
        for given, made in ((self.one, self.other), (self.other, self.one)):
            before = f"(?<={self.before})" if self.before else ""
            behind = f"(?={self.behind})" if self.behind else ""
            yield re.compile(f"{before}{given}{behind}"), made


_VERB = r"(?:e|es|ed|er|ers|ing|able|ations?)\Z"
_RULES = (
    # British and American English.
    _Rule("is", "iz", r"\w{3}", _VERB),
    _Rule("ys", "yz", r"\w{2}", _VERB),
    _Rule("our", "or", r"\w{3}", r"(?:s|ed|ing|ers?|ful|fully|ites?|abl[ey]|al|hoods?|ists?|less)?\Z"),
    _Rule("re", "er", r"\w{2}[bt]", r"s?\Z"),
    _Rule("ogue", "og", r"\w{3}", r"s?\Z"),
    _Rule("ence", "ense", r"\w{3}", r"s?\Z"),
    _Rule("ll", "l", r"\w{2}[aeiou]", r"(?:ed|ing|ers?|ors?|ations?)\Z"),
    _Rule("ae", "e", r"\w"),
    # Letters without a keyboard, German and Scandinavian digraphs: fold makes ä, ö, ü and å bare already.
    _Rule("ae", "a"),
    _Rule("oe", "o"),
    _Rule("ue", "u", "(?<![aeqo])."),
    _Rule("aa", "a"),
    _Rule("ae", "æ"),
    _Rule("oe", "ø"),
    _Rule("oe", "œ"),
    _Rule("o", "ø"),
    _Rule("l", "ł"),
    _Rule("d", "đ"),
    _Rule("i", "ı"),
    _Rule("th", "þ"),
    # Cyrillic letters that hurry, or another keyboard, leaves bare.
    _Rule("й", "и"),
    _Rule("ґ", "г"),
    _Rule("ў", "у"),
    # Arabic: carriers of hamza, the dotless yeh and the feminine ending; Persian letters.
    _Rule("أ", "ا"),
    _Rule("إ", "ا"),
    _Rule("آ", "ا"),
    _Rule("ى", "ي"),
    _Rule("ة", "ه", behind=r"\Z"),
    _Rule("ک", "ك"),
    _Rule("ی", "ي"),
)
_REWRITES = tuple(way for rule in _RULES for way in rule.both_ways())


def _rewritten(folded: str) -> Iterator[str]:
    """Each rule applied wherever it can be, then at each single place."""
    for pattern, made in _REWRITES:
        places = list(pattern.finditer(folded))
        if len(places) > 1:
            yield pattern.sub(made, folded)
        for place in places:
            yield folded[: place.start()] + made + folded[place.end() :]


_SMALL, _LARGE = "ァィゥェォッャュョヮぁぃぅぇぉっゃゅょゎ", "アイウエオツヤユヨワあいうえおつやゆよわ"
_TO_LARGE = str.maketrans(_SMALL, _LARGE)
_HIRAGANA = "".join(map(chr, range(0x3041, 0x3097)))
_KATAKANA = "".join(map(chr, range(0x30A1, 0x30F7)))
_TO_KATAKANA, _TO_HIRAGANA = str.maketrans(_HIRAGANA, _KATAKANA), str.maketrans(_KATAKANA, _HIRAGANA)
_SOUNDS = (("ヴァ", "バ"), ("ヴィ", "ビ"), ("ヴェ", "ベ"), ("ヴォ", "ボ"), ("ヴ", "ブ"), ("ヂ", "ジ"), ("ヅ", "ズ"))
_LONG = "ー"


def _kana(folded: str) -> Iterator[str]:
    """The long vowel mark left out, at the end and everywhere; small kana written large; the other kana; v as b."""
    yield folded.removesuffix(_LONG)
    yield folded.replace(_LONG, "")
    yield folded.translate(_TO_LARGE)
    yield folded.translate(_TO_KATAKANA)
    yield folded.translate(_TO_HIRAGANA)
    for one, other in _SOUNDS:
        yield folded.replace(one, other)
        yield folded.replace(other, one)
