"""Instants as tables write them: ISO dates and times, or numbers counted from 1970 in some unit.

Decides which unit a number is in, and what is too odd to be a time. Must never know where a value came from.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation

__all__ = ["instant_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FIRST_SECOND = 100_000_000
"""3 March 1973. With this floor the ranges of seconds, milliseconds and microseconds do not meet."""

_END_SECOND = 4_102_444_800
"""The year 2100: a time beyond it is a number in another unit, never a message."""

_MICROS_PER_UNIT = (1_000_000, 1_000, 1)


def instant_of(text: str, zone: tzinfo) -> int:
    """Microseconds since 1970, UTC, of an ISO date or time, or of a count of seconds, milli- or microseconds.

    A text without a zone is in `zone`. Digits beyond microseconds are dropped, never rounded. Eight digits
    are a date (`20161107`).

    Raises:
        ValueError: in words that end "the time ...".
    """
    value = text.strip()
    if not (len(value) == 8 and value.isdigit()):
        try:
            number = Decimal(value)
        except InvalidOperation:
            pass
        else:
            return _of_number(number)
    return _of_iso(value, zone)


def _of_number(number: Decimal) -> int:
    if number.is_finite() and number.adjusted() < 18:
        for micros in _MICROS_PER_UNIT:
            instant = int(number * micros)
            if _FIRST_SECOND * 1_000_000 <= instant < _END_SECOND * 1_000_000:
                return instant
    raise ValueError("is no plausible time in seconds, milliseconds or microseconds since 1970")


def _of_iso(value: str, zone: tzinfo) -> int:
    try:
        parsed = datetime.fromisoformat(value.removesuffix(" UTC") + ("Z" if value.endswith(" UTC") else ""))
        aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=zone)
        instant = (aware - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise ValueError("is neither an ISO time nor a number") from None
    if not 0 <= instant < _END_SECOND * 1_000_000:
        raise ValueError("is not between 1970 and 2100")
    return instant
