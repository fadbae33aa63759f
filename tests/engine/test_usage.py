"""Records and months: what counts as what, and which month anything belongs to."""

from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.usage import (
    ANSWERED,
    PROGRESS,
    REFUNDED,
    REPEATED,
    Month,
    Usage,
    began_in,
    minute_of,
    month_end,
    month_of,
    record_id,
    refund_mark,
    refund_of,
)
from tests.depth import depth

NOON = 1_480_507_200_000_000
SECOND = 1_000_000
LATEST = 64_000_000_000 * SECOND
"""In the year 3998."""


def usage(outcome: str = ANSWERED, charge: int = 0) -> Usage:
    return Usage(record_id(NOON, "a1"), "key:ada", "count_messages", NOON, outcome, charge, bytes_returned=7)


@settings(max_examples=depth(2_000, 100), deadline=None, derandomize=True)
@given(at=st.integers(0, LATEST))
def test_an_id_tells_its_instant_and_a_month_ends_where_the_next_begins(at: int) -> None:
    assert began_in(record_id(at, "x-y")) == at
    assert month_of(month_end(at) - 1) == month_of(at) < month_of(month_end(at))
    assert at < month_end(at) <= at + 31 * 86_400 * SECOND
    assert minute_of(at) * 60 * SECOND <= at < (minute_of(at) + 1) * 60 * SECOND


@settings(max_examples=depth(2_000, 100), deadline=None, derandomize=True)
@given(first=st.integers(0, LATEST), second=st.integers(0, LATEST))
def test_ids_sort_by_their_instants(first: int, second: int) -> None:
    if first != second:
        assert (record_id(first, "z") < record_id(second, "a")) == (first < second)


@pytest.mark.parametrize(
    "text", ["", "abc", "656a3f1c2d40-x", "0656A3F1C2D400-x", "0656a3f1c2d40g-x", "0656a3f1c2d400"]
)
def test_what_is_no_id_is_told_from_one(text: str) -> None:
    assert began_in(text) is None


def test_the_last_second_of_a_year_belongs_to_december() -> None:
    new_year = month_end(NOON + 31 * 86_400 * SECOND)
    assert (month_of(new_year - 1), month_of(new_year)) == ("2016-12", "2017-01")


@pytest.mark.parametrize(
    ("outcome", "charge", "kind"),
    [
        (ANSWERED, 5, "calls"),
        (REPEATED, 0, "free"),
        (PROGRESS, 0, "free"),
        (REFUNDED, -5, "refunds"),
        ("unknown_value", 0, "errors"),
        ("internal", 0, "errors"),
    ],
)
def test_each_record_raises_one_count_and_the_sums_it_has(outcome: str, charge: int, kind: str) -> None:
    month = Month("key:ada", "2016-11").plus(usage(outcome, charge)).plus(usage(outcome, charge))
    expected = asdict(Month("key:ada", "2016-11")) | {kind: 2, "spend": 2 * charge, "bytes_returned": 14}
    assert asdict(month) == expected
    assert usage().month == "2016-11"


def test_a_refund_gives_back_what_was_charged_and_counts_where_it_is_given() -> None:
    charged = usage(charge=5)
    refund = refund_of(charged, month_end(NOON))
    assert (refund.charge, refund.outcome, refund.month, refund.prepaid) == (-5, REFUNDED, "2016-12", False)
    assert began_in(refund.call_id) == refund.began_at
    assert refund_mark(charged.call_id) != refund_mark(refund.call_id)
