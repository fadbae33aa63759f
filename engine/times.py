"""Instants as text: what a caller may write for `after` and `before`, and how times are shown.

Inside the engine a time is an integer, microseconds since 1970 in UTC; this module is the only one that reads or
writes another form.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from engine.errors import BadInput, quoted

__all__ = [
    "SECOND",
    "TIME_FORMS",
    "Bucketing",
    "bucketing",
    "iso",
    "iso_micros",
    "iso_minute",
    "parse_instant",
    "to_date",
    "to_datetime",
    "to_minute",
]

SECOND = 1_000_000
"""In microseconds."""

TIME_FORMS = "2016-12, 2016-12-31 or 2016-12-31T10:00:00Z"
"""What errors offer."""

_INSTANT = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,6})\d*)?)?"
    r"\s*(?P<zone>[Zz]|[+-]\d{2}:?\d{2})?)?)?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def parse_instant(name: str, text: str, zone: tzinfo) -> int:
    """The first instant of what `text` names, in `zone` where it names none.

    Raises:
        BadInput: `bad_time`, naming the parameter, the value and what is wrong with it.
    """
    match = _INSTANT.fullmatch(text.strip())
    if match is None:
        raise _bad(name, text, "is not a time")
    part = match.groupdict()
    month, day = int(part["month"] or 1), int(part["day"] or 1)
    if not 1 <= month <= 12:
        raise _bad(name, text, "has no such month")
    if int(part["year"]) < 1:
        raise _bad(name, text, "is out of range")
    if int(part["hour"] or 0) > 23 or int(part["minute"] or 0) > 59 or int(part["second"] or 0) > 59:
        raise _bad(name, text, "has no such time of day")
    try:
        named = _zone(part["zone"])
    except ValueError as error:
        raise _bad(name, text, "has no such time zone") from error
    try:
        local = datetime(
            int(part["year"]),
            month,
            day,
            int(part["hour"] or 0),
            int(part["minute"] or 0),
            int(part["second"] or 0),
            int((part["fraction"] or "0").ljust(6, "0")),
            tzinfo=named or zone,
        )
        return (local.astimezone(UTC) - _EPOCH) // _MICROSECOND
    except ValueError as error:
        raise _bad(name, text, "has no such day") from error
    except OverflowError as error:
        raise _bad(name, text, "is out of range") from error


def _zone(text: str | None) -> tzinfo | None:
    if text is None:
        return None
    if text in "Zz":
        return UTC
    return datetime.strptime(text.replace(":", ""), "%z").tzinfo


def _bad(name: str, text: str, what: str) -> BadInput:
    return BadInput("bad_time", f"{name} {quoted(text)} {what}", next_step=f"give {TIME_FORMS}")


def to_datetime(instant: int, zone: tzinfo = UTC) -> datetime:
    """The instant as an aware datetime in `zone`."""
    return (_EPOCH + timedelta(microseconds=instant)).astimezone(zone)


def iso(instant: int) -> str:
    """`2016-11-07T10:00:00Z`, seconds, UTC."""
    return _spelled(instant, "seconds", "T") + "Z"


def iso_minute(instant: int) -> str:
    """`2016-11-07T10:00Z`; with seconds and their fraction where there are any: an echo is exact."""
    at = to_datetime(instant)
    spec = "microseconds" if at.microsecond else "seconds" if at.second else "minutes"
    return _spelled(instant, spec, "T") + "Z"


def iso_micros(instant: int) -> str:
    """`2016-06-23T14:58:17.000381Z`: microseconds, UTC."""
    return _spelled(instant, "microseconds", "T") + "Z"


def to_minute(instant: int) -> str:
    """`2016-11-07 10:00`, UTC."""
    return _spelled(instant, "minutes", " ")


def to_date(instant: int) -> str:
    """`2016-11-07`, UTC."""
    return to_datetime(instant).date().isoformat()


def _spelled(instant: int, precision: str, separator: str) -> str:
    # Not strftime, which writes the years before 1000 with fewer digits on some platforms.
    return to_datetime(instant).replace(tzinfo=None).isoformat(separator, precision)


@dataclass(frozen=True, slots=True)
class Bucketing:
    """Consecutive buckets of one unit: `labels`, and `starts` as instants with one more for the end.

    `earlier` is how many more the period would have had before the first, `zone` where its days begin at midnight.
    """

    unit: str
    labels: tuple[str, ...]
    starts: tuple[int, ...]
    earlier: int
    zone: tzinfo


_Step = Callable[[date], date]


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _quarter(day: date) -> date:
    return date(day.year, day.month - (day.month - 1) % 3, 1)


def _months_on(day: date, months: int) -> date:
    index = day.year * 12 + day.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


_UNITS: dict[str, tuple[_Step, _Step, Callable[[date], str], Callable[[date], int]]] = {
    "day": (lambda d: d, lambda d: d + timedelta(days=1), date.isoformat, date.toordinal),
    "week": (
        _monday,
        lambda d: d + timedelta(days=7),
        lambda d: f"{d.isocalendar()[0]:04d}-W{d.isocalendar()[1]:02d}",
        lambda d: (d.toordinal() - 1) // 7,
    ),
    "month": (
        lambda d: d.replace(day=1),
        lambda d: _months_on(d, 1),
        lambda d: f"{d.year:04d}-{d.month:02d}",
        lambda d: d.year * 12 + d.month,
    ),
    "quarter": (
        _quarter,
        lambda d: _months_on(d, 3),
        lambda d: f"{d.year:04d}-Q{(d.month + 2) // 3}",
        lambda d: d.year * 4 + (d.month - 1) // 3,
    ),
    "year": (
        lambda d: date(d.year, 1, 1),
        lambda d: date(d.year + 1, 1, 1),
        lambda d: f"{d.year:04d}",
        lambda d: d.year,
    ),
}
"""Of each unit: where the bucket of a day starts, where the next one does, its name, and its number."""


def bucketing(first: int, last: int, zone: tzinfo, unit: str | None = None, most: int = 24) -> Bucketing:
    """Buckets in `zone` that cover both instants.

    Without a `unit`, the finest of day, week, month, quarter and year that needs at most `most` buckets; with
    one, or when even years are too many, the latest `most`.
    """
    start, end = _day(first, zone), _day(last, zone)
    if unit is not None:
        return _buckets(unit, start, end, zone, most)
    for name, days in (("day", 1), ("week", 7), ("month", 28), ("quarter", 90), ("year", 365)):
        if (end - start).days // days <= most * 2:
            made = _buckets(name, start, end, zone, most + 1)
            if len(made.labels) <= most:
                return made
    return _buckets("year", start, end, zone, most)


def _buckets(unit: str, start: date, end: date, zone: tzinfo, most: int) -> Bucketing:
    floor, step, label, number = _UNITS[unit]
    spans = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
    earliest = end - timedelta(days=min(spans[unit] * (most + 1), (end - date.min).days))
    day = floor(max(start, earliest))
    days = [day]
    while (following := _after(day, step)) is not None and following <= end:
        days.append(following)
        day = following
    days = days[-most:]
    starts = [_midnight(d, zone) for d in days]
    starts.append(_LAST + 1 if following is None else _midnight(following, zone))
    return Bucketing(unit, tuple(map(label, days)), tuple(starts), number(days[0]) - number(start), zone)


def _day(instant: int, zone: tzinfo) -> date:
    """The day of an instant in `zone`; the nearest one there is, where the calendar ends before the zone does."""
    try:
        return to_datetime(instant, zone).date()
    except OverflowError:
        return to_datetime(instant).date()


def _after(day: date, step: _Step) -> date | None:
    try:
        return step(day)
    except (OverflowError, ValueError):
        return None  # the calendar ends with the year 9999


def _midnight(day: date, zone: tzinfo) -> int:
    if day == date.min:
        return _FIRST  # whatever lies before it in some zone has no earlier day to belong to
    return (datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC) - _EPOCH) // _MICROSECOND
