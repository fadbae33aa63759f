"""What a card number looks like: issuer, length, grouping and Luhn's check digit.

Decides by the networks' own tables of first digits (ISO/IEC 7812-1), so that order numbers, time stamps and phone
numbers stay whole but for one in so many that no rule could tell from a card. Must never know what becomes of a match.
"""

import re
from collections.abc import Iterator

from engine.secret_forms import Form, nuls_before, places_of, runs_of

__all__ = ["CARDS", "card_places", "may_hold_card"]

_SPACED = r"[ \u00a0-]"
_DIGITS = r"[0-9０-９]"
"""Wide ones too, as a Japanese keyboard writes them."""
_WORD = r"[0-9A-Za-z０-９]"


def _is_card(match: re.Match[str]) -> bool:
    """Issuer, length and Luhn's check digit (ISO/IEC 7812-1)."""
    digits = [int(c) for c in match[0] if c.isdigit()]
    number = "".join(map(str, digits))
    if not any(len(number) in lengths and low <= number[: len(low)] <= high for low, high, lengths in _ISSUERS):
        return False
    doubled = [2 * d - 9 if d > 4 else 2 * d for d in digits[-2::-2]]
    return (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


_LONG = (16, 17, 18, 19)
_ISSUERS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("4", "4", (16, 19)),  # Visa; its old 13 digits are what bar codes and milliseconds have
    ("51", "55", (16,)),  # Mastercard
    ("2221", "2720", (16,)),  # Mastercard
    ("34", "34", (15,)),  # American Express
    ("37", "37", (15,)),
    ("6011", "6011", (16, 19)),  # Discover
    ("644", "659", (16, 19)),
    ("3528", "3589", _LONG),  # JCB
    ("300", "305", (14, 16)),  # Diners Club
    ("36", "36", (14, 16)),
    ("38", "39", (14, 16)),
    ("62", "62", _LONG),  # UnionPay
    ("2200", "2204", _LONG),  # Mir
    ("508", "508", (16,)),  # RuPay
    ("5018", "5018", _LONG),  # Maestro
    ("5020", "5020", _LONG),
    ("5038", "5038", _LONG),
    ("6304", "6304", _LONG),
    ("6759", "6763", _LONG),
)
"""First digits from and to, and lengths, by the networks' own tables."""


def _card(pattern: str) -> Form:
    # No part of a longer number, word, fraction or UUID.
    bounded = rf"(?<!{_WORD})(?<!{_WORD}[-_.])(?=[2-6２-６]){_DIGITS}{{4}}(?:{pattern})(?!{_WORD}|[-_.]{_WORD})"
    return Form("card number", (), re.compile(bounded), _is_card)


_FOUR = rf"{_DIGITS}{{4}}"
CARDS = (
    _card(rf"({_SPACED}){_FOUR}\1{_FOUR}\1{_FOUR}\1{_DIGITS}{{3}}"),
    _card(rf"({_SPACED}){_FOUR}\1{_FOUR}\1{_FOUR}|({_SPACED}){_DIGITS}{{6}}\2{_DIGITS}{{4,5}}|{_DIGITS}{{10,15}}"),
)
"""In one run, or in groups as on the card: the longest first, for a check number often follows."""

_NEAR_CARD = re.compile(rf"(?<!{_WORD}){_DIGITS}{{4}}{_SPACED}?{_DIGITS}{{4}}(?:{_DIGITS}|{_SPACED}){{6}}")
_DIGIT_RUN = b"a" * 14
_IN_CARD = runs_of(b"0123456789 -" + "\u00a0０１２３４５６７８９".encode())


def card_places(raw: bytes) -> Iterator[int]:
    """Where a card number may begin, in NULs before it."""
    return nuls_before(raw, places_of(_DIGIT_RUN, raw.translate(_IN_CARD)))


def may_hold_card(text: str) -> bool:
    """False when no card number can be in `text`."""
    raw = text.encode("utf-8", "surrogatepass").translate(_IN_CARD)
    return _DIGIT_RUN in raw and _NEAR_CARD.search(text) is not None
