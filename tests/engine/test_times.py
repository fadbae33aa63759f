"""Instants as text, and buckets of time: in any zone, over its changes of clock, from year 1 to 9999."""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.times import bucketing, iso, iso_minute, parse_instant, to_date, to_datetime, to_minute

BERLIN, NEW_YORK, KIRITIMATI = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("Pacific/Kiritimati")
BEIRUT = ZoneInfo("Asia/Beirut")
ZONES = [UTC, BERLIN, NEW_YORK, KIRITIMATI, BEIRUT]
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


def micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def utc(*parts: int) -> int:
    return micros(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type, misc]  # year, month, day and so on


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("2016", UTC, utc(2016, 1, 1)),
        ("2016-11", UTC, utc(2016, 11, 1)),
        ("2016-1-2", UTC, utc(2016, 1, 2)),
        (" 2016-11-07 ", UTC, utc(2016, 11, 7)),
        ("2016-11-07", BERLIN, utc(2016, 11, 6, 23)),
        ("2016-07-07", BERLIN, utc(2016, 7, 6, 22)),
        ("2016-11-07T10:00", NEW_YORK, utc(2016, 11, 7, 15)),
        ("2016-11-07 9:05", UTC, utc(2016, 11, 7, 9, 5)),
        ("2016-11-07T10:00:00Z", BERLIN, utc(2016, 11, 7, 10)),
        ("2016-11-07T10:00:00z", BERLIN, utc(2016, 11, 7, 10)),
        ("2016-11-07T10:00:00+05:30", BERLIN, utc(2016, 11, 7, 4, 30)),
        ("2016-11-07T10:00:00 -0530", BERLIN, utc(2016, 11, 7, 15, 30)),
        ("2016-11-07T10:00:00.25Z", UTC, utc(2016, 11, 7, 10, 0, 0, 250_000)),
        ("2016-11-07T10:00:00.1234567Z", UTC, utc(2016, 11, 7, 10, 0, 0, 123_456)),
        ("2016-03-27T02:30", BERLIN, utc(2016, 3, 27, 1, 30)),
        ("2016-10-30T02:30", BERLIN, utc(2016, 10, 30, 0, 30)),
        ("2016-02-29", UTC, utc(2016, 2, 29)),
        ("0001", UTC, micros(FIRST)),
        ("9999-12-31T23:59:59.999999Z", UTC, micros(LAST)),
    ],
)
def test_a_time_is_its_first_instant_in_the_zone_given(text: str, zone: tzinfo, instant: int) -> None:
    assert parse_instant("after", text, zone) == instant


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is not a time"),
        ("yesterday", "is not a time"),
        ("16-11-07", "is not a time"),
        ("٢٠١٦", "is not a time"),
        ("2016-11-07T10", "is not a time"),
        ("2016-11-07T10:00:00Z; DROP TABLE", "is not a time"),
        ("2016-11-07\0", "is not a time"),
        ("2016-13-01", "has no such month"),
        ("2016-00", "has no such month"),
        ("2016-02-30", "has no such day"),
        ("2015-02-29", "has no such day"),
        ("2016-11-07T24:00", "has no such time of day"),
        ("2016-11-07T10:60", "has no such time of day"),
        ("2016-11-07T10:00:60", "has no such time of day"),
        ("2016-11-07T10:00+99:00", "has no such time zone"),
        ("0000", "is out of range"),
        ("0001-01-01T00:00+05:00", "is out of range"),
        ("9999-12-31T23:59-05:00", "is out of range"),
    ],
)
def test_what_is_no_time_is_named_with_what_is_wrong(text: str, what: str) -> None:
    with pytest.raises(BadInput) as raised:
        parse_instant("before", text, UTC)
    assert raised.value.code == "bad_time"
    assert raised.value.message.startswith("before '")
    assert raised.value.message.endswith(what)
    assert raised.value.next_step == "give 2016-12, 2016-12-31 or 2016-12-31T10:00:00Z"


@pytest.mark.parametrize(
    ("instant", "forms"),
    [
        (utc(2016, 11, 7, 10), ("2016-11-07T10:00:00Z", "2016-11-07T10:00Z", "2016-11-07 10:00", "2016-11-07")),
        (utc(2016, 1, 2, 3, 4, 5), ("2016-01-02T03:04:05Z", "2016-01-02T03:04:05Z", "2016-01-02 03:04", "2016-01-02")),
        (
            utc(16, 1, 2, 0, 0, 0, 7),
            ("0016-01-02T00:00:00Z", "0016-01-02T00:00:00.000007Z", "0016-01-02 00:00", "0016-01-02"),
        ),
        (-1, ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z", "1969-12-31 23:59", "1969-12-31")),
    ],
)
def test_a_time_is_shown_with_four_digits_of_its_year(instant: int, forms: tuple[str, ...]) -> None:
    assert (iso(instant), iso_minute(instant), to_minute(instant), to_date(instant)) == forms


@given(st.datetimes(timezones=st.just(UTC)))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_an_echoed_instant_is_read_as_itself(at: datetime) -> None:
    assert parse_instant("after", iso_minute(micros(at)), BERLIN) == micros(at)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", [None, "day", "week", "month", "quarter", "year"])
@given(st.datetimes(), st.timedeltas(timedelta(0), timedelta(days=9_000)), st.integers(1, 30))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_buckets_are_consecutive_and_hold_the_end(
    zone: tzinfo, unit: str | None, start: datetime, span: timedelta, most: int
) -> None:
    first = micros(start.replace(tzinfo=UTC))
    last = min(first + micros(datetime(1970, 1, 1, tzinfo=UTC) + span), micros(LAST))
    made = bucketing(first, last, zone, unit, most)
    assert unit is None or made.unit == unit
    assert 1 <= len(made.labels) == len(made.starts) - 1 <= most
    assert list(made.starts) == sorted(set(made.starts))
    assert list(made.labels) == sorted(set(made.labels))
    assert made.starts[-2] <= last < made.starts[-1]
    if len(made.labels) < most:
        assert made.starts[0] <= first
    every = bucketing(first, last, zone, made.unit, 10_000)
    assert (every.labels[made.earlier :], every.earlier) == (made.labels, 0)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", [None, "day", "week", "month", "quarter", "year"])
def test_the_first_and_last_instants_of_all_have_buckets(zone: tzinfo, unit: str | None) -> None:
    for first, last in ((FIRST, FIRST), (LAST, LAST), (FIRST, LAST), (FIRST, FIRST + timedelta(days=5))):
        made = bucketing(micros(first), micros(last), zone, unit)
        assert 1 <= len(made.labels) <= 24
        assert made.starts[-2] <= micros(last) < made.starts[-1]


def test_a_day_of_changing_clocks_has_23_or_25_hours() -> None:
    spring = bucketing(utc(2016, 3, 26), utc(2016, 3, 28), BERLIN)
    assert spring.labels == ("2016-03-26", "2016-03-27", "2016-03-28")
    assert [(b - a) // 3_600_000_000 for a, b in zip(spring.starts, spring.starts[1:], strict=False)] == [24, 23, 24]
    autumn = bucketing(utc(2016, 10, 29), utc(2016, 10, 31), BERLIN)
    assert [(b - a) // 3_600_000_000 for a, b in zip(autumn.starts, autumn.starts[1:], strict=False)] == [24, 25, 24]


def test_a_day_without_midnight_begins_at_its_first_hour() -> None:
    made = bucketing(utc(2016, 3, 26, 12), utc(2016, 3, 27, 12), BEIRUT)
    assert [to_datetime(start, BEIRUT).hour for start in made.starts] == [0, 1, 0]


@pytest.mark.parametrize(
    ("first", "last", "unit", "labels"),
    [
        ((2016, 1, 3), (2016, 1, 4), "week", ["2015-W53", "2016-W01"]),
        ((2016, 12, 31), (2017, 1, 2), "week", ["2016-W52", "2017-W01"]),
        ((2016, 3, 31), (2016, 10, 1), "quarter", ["2016-Q1", "2016-Q2", "2016-Q3", "2016-Q4"]),
        ((2015, 12, 31), (2016, 1, 1), "year", ["2015", "2016"]),
        ((2016, 11, 30), (2017, 2, 1), "month", ["2016-11", "2016-12", "2017-01", "2017-02"]),
    ],
)
def test_buckets_end_at_the_borders_of_weeks_quarters_and_years(
    first: tuple[int, ...], last: tuple[int, ...], unit: str, labels: list[str]
) -> None:
    assert list(bucketing(utc(*first), utc(*last), UTC, unit).labels) == labels


@pytest.mark.parametrize(
    ("days", "unit"),
    [
        (0, "day"),
        (23, "day"),
        (24, "week"),
        (150, "week"),
        (200, "month"),
        (800, "quarter"),
        (3_000, "year"),
        (20_000, "year"),
    ],
)
def test_the_finest_unit_that_needs_at_most_24_buckets_is_chosen(days: int, unit: str) -> None:
    first = utc(1970, 1, 1)
    made = bucketing(first, first + days * 86_400_000_000, UTC)
    assert made.unit == unit
    assert len(made.labels) <= 24
