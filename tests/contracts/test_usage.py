"""What every store of usage does."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ReadTimeoutError

from engine.errors import Unavailable
from engine.usage import (
    ANSWERED,
    REFUNDED,
    REPEATED,
    Account,
    Grant,
    Hold,
    Month,
    Reserved,
    Usage,
    UsageStore,
    month_end,
    record_id,
)
from infra.aws import AwsSettings
from infra.dynamodb_usage import DynamoUsage
from infra.sqlite_usage import SqliteUsage
from tests.contracts.usage_bench import USAGE_ADAPTERS, new_usage_table, open_usage, usage_bench
from tests.local_aws import LocalAws, free_ports

Open = Callable[[], UsageStore]

NOON = 1_480_507_200_000_000
"""2016-11-30 12:00 UTC in microseconds."""
SECOND = 1_000_000
YEAR = NOON + 400 * 86_400 * SECOND
ADA = "key:ada"


@pytest.fixture(params=USAGE_ADAPTERS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Gives the store as another process would see it; that of DynamoDB keeps nothing but a client, so it is one."""
    bench = usage_bench(request, tmp_path)
    return lambda: open_usage(*bench.arguments) if bench.arguments[0] == "sqlite" else bench.store


def usage(n: int = 1, at: int = NOON, *, caller_id: str = ADA, charge: int = 100, prepaid: bool = False) -> Usage:
    return Usage(
        call_id=record_id(at, f"{n:04x}"),
        caller_id=caller_id,
        tool="search_messages",
        began_at=at,
        outcome=ANSWERED,
        charge=charge,
        prepaid=prepaid,
        milliseconds=7,
        rows_scanned=70,
        bytes_scanned=700,
        bytes_returned=7_000,
        s3_requests=2,
        dynamodb_requests=3,
        snapshot_at=NOON - 5,
    )


def hold_of(made: Usage, amount: int, seconds: int = 120) -> Hold:
    return Hold(made.call_id, made.caller_id, made.began_at, made.began_at + seconds * SECOND, amount)


def credit(store: UsageStore, amount: int, reference: str = "first") -> None:
    assert store.grant(Grant(ADA, reference, amount, NOON))


def test_a_record_comes_back_whole_and_is_the_sum_of_its_month(opened: Open) -> None:
    first, second = usage(1), replace(usage(2, NOON + 1), snapshot_at=None, prepaid=False, charge=0, outcome="bad_time")
    store = opened()
    assert store.settle(second, keep_until=YEAR) == "written"
    assert store.settle(first, keep_until=YEAR) == "written"
    other = opened()
    assert other.records(ADA, "2016-11") == [first, second]
    summed = Month(ADA, "2016-11").plus(first).plus(second)
    assert (summed.calls, summed.errors, summed.spend, summed.bytes_returned) == (1, 1, 100, 14_000)
    assert other.month(ADA, "2016-11") == summed
    assert other.months("2016-11") == [summed]
    assert (other.months("2016-12"), other.records(ADA, "2016-12")) == ([], [])
    assert other.month("nobody", "2016-11") == Month("nobody", "2016-11")


def test_a_record_that_is_written_twice_counts_once(opened: Open) -> None:
    store, made = opened(), usage(prepaid=True)
    credit(store, 1_000)
    hold = store.reserve(hold_of(made, 100), per_minute=0, now=NOON).hold
    for _ in range(3):
        assert store.settle(made, keep_until=YEAR, hold=hold) == "written"
    assert opened().records(ADA, made.month) == [made]
    assert opened().month(ADA, made.month) == Month(ADA, made.month).plus(made)
    assert opened().account(ADA, now=NOON) == Account(ADA, 900, 0)


def test_a_call_belongs_to_the_month_it_began_in(opened: Open) -> None:
    store, end = opened(), month_end(NOON)
    last, first = usage(1, end - 1), usage(2, end)
    for made in (last, first):
        store.settle(made, keep_until=YEAR)
    assert store.records(ADA, "2016-11") == [last]
    assert store.records(ADA, "2016-12") == [first]
    assert month_end(end) - end == 31 * 86_400 * SECOND


def test_callers_do_not_share_months_nor_credit(opened: Open) -> None:
    store, bob = opened(), "x" * 3_000
    credit(store, 50)
    store.settle(usage(1), keep_until=YEAR)
    store.settle(usage(2, caller_id=bob), keep_until=YEAR)
    assert [month.caller_id for month in store.months("2016-11")] == [ADA, bob]
    assert store.month(bob, "2016-11") == Month(bob, "2016-11").plus(usage(2, caller_id=bob))
    assert store.account(bob, now=NOON) == Account(bob, 0, 0)


def test_credit_is_granted_once_for_each_reference(opened: Open) -> None:
    store = opened()
    credit(store, 500)
    credit(store, 500)
    assert not store.grant(Grant(ADA, "first", 600, NOON))
    credit(store, 70, "second")
    assert opened().account(ADA, now=NOON) == Account(ADA, 570, 0)


def test_what_is_reserved_is_nobody_elses_until_it_is_settled(opened: Open) -> None:
    store, first, second = opened(), usage(1, prepaid=True), usage(2, prepaid=True)
    credit(store, 150)
    held = store.reserve(hold_of(first, 100), per_minute=0, now=NOON)
    assert (held.state, held.balance) == ("held", 50)
    assert opened().account(ADA, now=NOON) == Account(ADA, 50, 100)
    refused = opened().reserve(hold_of(second, 100), per_minute=0, now=NOON)
    assert (refused.state, refused.balance) == ("too_little", 50)
    assert store.settle(replace(first, charge=30), keep_until=YEAR, hold=held.hold) == "written"
    assert opened().account(ADA, now=NOON) == Account(ADA, 120, 0)


def test_a_reservation_that_is_made_twice_holds_once(opened: Open) -> None:
    store, made = opened(), usage(prepaid=True)
    credit(store, 150)
    for _ in range(3):
        assert store.reserve(hold_of(made, 100), per_minute=1, now=NOON).state == "held"
    assert store.account(ADA, now=NOON) == Account(ADA, 50, 100)


def test_without_credit_nothing_is_held(opened: Open) -> None:
    store = opened()
    assert store.reserve(hold_of(usage(), 1), per_minute=0, now=NOON) == Reserved("too_little", hold_of(usage(), 1), 0)
    assert store.account(ADA, now=NOON) == Account(ADA, 0, 0)


def test_a_reservation_ends_by_itself_and_its_amount_is_free_again(opened: Open) -> None:
    store, killed, next_one = opened(), usage(1, prepaid=True), usage(2, prepaid=True)
    credit(store, 100)
    hold = store.reserve(hold_of(killed, 100), per_minute=0, now=NOON).hold
    early, late = hold.until - 1, hold.until
    assert opened().reserve(hold_of(next_one, 100), per_minute=0, now=early).state == "too_little"
    assert opened().account(ADA, now=early) == Account(ADA, 0, 100)
    assert opened().account(ADA, now=late) == Account(ADA, 100, 0)
    assert opened().reserve(hold_of(next_one, 100, 999), per_minute=0, now=late).state == "held"
    assert opened().account(ADA, now=late) == Account(ADA, 0, 100)
    # The one that was thought dead comes back: what it held is another's now.
    assert store.settle(killed, keep_until=YEAR, hold=hold) == "unpaid"
    assert (store.records(ADA, "2016-11"), store.account(ADA, now=late)) == ([], Account(ADA, 0, 100))
    credit(store, 500, "more")
    assert store.settle(killed, keep_until=YEAR, hold=hold) == "written"
    assert store.account(ADA, now=late) == Account(ADA, 400, 100)


def test_an_error_costs_nothing_even_when_its_reservation_is_over(opened: Open) -> None:
    store, killed, next_one = opened(), usage(1, prepaid=True), usage(2, prepaid=True)
    credit(store, 100)
    hold = store.reserve(hold_of(killed, 100), per_minute=0, now=NOON).hold
    store.reserve(hold_of(next_one, 100, 999), per_minute=0, now=hold.until)
    failed = replace(killed, outcome="too_slow", charge=0)
    assert store.settle(failed, keep_until=YEAR, hold=hold) == "written"
    assert store.account(ADA, now=hold.until) == Account(ADA, 0, 100)


def test_a_minute_takes_so_many_calls_and_the_next_one_as_many_again(opened: Open) -> None:
    store = opened()
    states = []
    for n in range(9):
        made = usage(n, NOON + n * 20 * SECOND)
        reserved = store.reserve(hold_of(made, 0), per_minute=2, now=made.began_at)
        states.append(reserved.state)
        if reserved.state == "held":
            assert store.settle(made, keep_until=YEAR, hold=reserved.hold) == "written"
    assert states == ["held", "held", "too_many"] * 3
    assert store.month(ADA, "2016-11").calls == 6


def test_a_call_that_came_late_had_the_minute_after_its_own_forgotten(opened: Open) -> None:
    store, minute = opened(), NOON + 60 * SECOND
    first, late, next_one = usage(1, minute), usage(2, minute - 1), usage(3, minute + 1)
    states = [
        store.reserve(hold_of(made, 0), per_minute=1, now=made.began_at).state for made in (first, late, next_one)
    ]
    assert (states[0], states[2]) == ("held", "too_many")
    # A clock that was ahead keeps nobody out until it is right.
    ahead, right = usage(4, minute + 9_999 * SECOND), usage(5, minute + 120 * SECOND)
    assert [store.reserve(hold_of(made, 0), per_minute=1, now=made.began_at).state for made in (ahead, right)] == [
        "held",
        "held",
    ]


def test_a_full_minute_holds_no_credit(opened: Open) -> None:
    store = opened()
    credit(store, 100)
    store.reserve(hold_of(usage(1), 10), per_minute=1, now=NOON)
    assert store.reserve(hold_of(usage(2), 10), per_minute=1, now=NOON).state == "too_many"
    assert store.account(ADA, now=NOON) == Account(ADA, 90, 10)


def test_a_reservation_is_raised_as_far_as_credit_goes(opened: Open) -> None:
    store, made = opened(), usage(prepaid=True)
    credit(store, 100)
    hold = store.reserve(hold_of(made, 10), per_minute=0, now=NOON).hold
    later = hold.until + 1
    assert store.raise_to(hold, 101, until=later, now=NOON) == Reserved("too_little", hold, 90)
    raised = store.raise_to(hold, 80, until=later, now=NOON)
    assert (raised.state, raised.hold.amount, raised.hold.until, raised.balance) == ("held", 80, later, 20)
    # An answer that was lost on the way: what is asked for is held already.
    assert store.raise_to(hold, 80, until=later, now=NOON).state == "held"
    assert store.account(ADA, now=hold.until) == Account(ADA, 20, 80)
    # One that does not know how far it came settles all the same.
    assert store.settle(replace(made, charge=80), keep_until=YEAR, hold=hold) == "written"
    assert store.account(ADA, now=NOON) == Account(ADA, 20, 0)


def test_a_reservation_may_be_raised_after_its_end_while_there_is_credit(opened: Open) -> None:
    store, slow, other = opened(), usage(1, prepaid=True), usage(2, prepaid=True)
    credit(store, 100)
    hold = store.reserve(hold_of(slow, 40), per_minute=0, now=NOON).hold
    over = hold.until
    store.reserve(hold_of(other, 70, 999), per_minute=0, now=over)
    assert store.raise_to(hold, 50, until=over + 9, now=over).state == "too_little"
    assert store.account(ADA, now=over) == Account(ADA, 30, 70)
    raised = store.raise_to(hold, 30, until=over + 9, now=over)
    assert (raised.state, store.account(ADA, now=over)) == ("held", Account(ADA, 0, 100))


def test_one_charge_for_one_mark(opened: Open) -> None:
    store, first, again = opened(), usage(1), usage(2)
    assert store.marked(ADA, "batch") is None
    assert store.settle(first, keep_until=YEAR, mark="batch", mark_until=YEAR) == "written"
    assert store.marked(ADA, "batch") == first.call_id
    assert store.marked("key:bob", "batch") is None
    assert store.settle(again, keep_until=YEAR, mark="batch", mark_until=YEAR) == "charged_before"
    assert store.settle(first, keep_until=YEAR, mark="batch", mark_until=YEAR) == "written"
    assert store.settle(replace(again, outcome=REPEATED, charge=0), keep_until=YEAR) == "written"
    month = store.month(ADA, "2016-11")
    assert (month.calls, month.free, month.spend) == (1, 1, 100)


@pytest.mark.parametrize("prepaid", [False, True])
def test_a_charge_is_given_back_once_in_the_month_that_is_done_in(opened: Open, *, prepaid: bool) -> None:
    store, made, later = opened(), usage(prepaid=prepaid), month_end(NOON) + 5
    credit(store, 100)
    store.settle(made, keep_until=YEAR)
    assert store.refund(ADA, "nothing", at=later, keep_until=YEAR) is None
    assert store.refund("key:bob", made.call_id, at=later, keep_until=YEAR) is None
    refund = store.refund(ADA, made.call_id, at=later, keep_until=YEAR)
    assert refund is not None
    assert (refund.outcome, refund.charge, refund.prepaid, refund.month) == (REFUNDED, -100, prepaid, "2016-12")
    assert opened().refund(ADA, made.call_id, at=later + 9, keep_until=YEAR) == refund
    assert store.refund(ADA, refund.call_id, at=later, keep_until=YEAR) is None
    assert store.month(ADA, "2016-11") == Month(ADA, "2016-11").plus(made)
    assert store.month(ADA, "2016-12") == Month(ADA, "2016-12").plus(refund)
    assert store.account(ADA, now=NOON) == Account(ADA, 100, 0)


def test_what_is_free_is_not_given_back(opened: Open) -> None:
    store = opened()
    store.settle(usage(charge=0), keep_until=YEAR)
    assert store.refund(ADA, usage().call_id, at=NOON, keep_until=YEAR) is None


def test_of_many_at_once_as_many_are_held_as_credit_pays_for(opened: Open) -> None:
    store = opened()
    credit(store, 5 * 100)

    def call(n: int) -> str:
        made = usage(n, prepaid=True)
        reserved = store.reserve(hold_of(made, 100), per_minute=0, now=NOON)
        if reserved.state == "held":
            assert store.settle(made, keep_until=YEAR, hold=reserved.hold) == "written"
        return reserved.state

    with ThreadPoolExecutor(8) as pool:
        states = list(pool.map(call, range(16)))
    assert (states.count("held"), states.count("too_little")) == (5, 11)
    assert store.account(ADA, now=NOON) == Account(ADA, 0, 0)
    month = store.month(ADA, "2016-11")
    assert (month.calls, month.spend, len(store.records(ADA, "2016-11"))) == (5, 500, 5)


def test_a_file_that_is_no_database_is_told_without_its_path(tmp_path: Path) -> None:
    path = tmp_path / "usage.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(Unavailable) as told:
        SqliteUsage(path).month(ADA, "2016-11")
    assert str(tmp_path) not in told.value.to_text() + told.value.detail


def test_a_new_file_is_its_owners_alone_and_is_opened_again_when_it_was_closed(tmp_path: Path) -> None:
    store = SqliteUsage(tmp_path / "usage.sqlite")
    store.settle(usage(), keep_until=YEAR)
    store.close()
    assert store.records(ADA, "2016-11") == [usage()]
    assert (tmp_path / "usage.sqlite").stat().st_mode & 0o777 == 0o600


def test_records_and_marks_go_when_their_time_is_over_and_months_stay(tmp_path: Path) -> None:
    store, later = SqliteUsage(tmp_path / "usage.sqlite"), usage(2, month_end(NOON))
    store.settle(usage(), keep_until=NOON + 1, mark="batch", mark_until=NOON + 1)
    store.settle(later, keep_until=YEAR)
    assert (store.records(ADA, "2016-11"), store.marked(ADA, "batch")) == ([], None)
    assert (store.month(ADA, "2016-11").calls, store.records(ADA, "2016-12")) == (1, [later])


@pytest.mark.aws
def test_a_table_out_of_reach_is_told_after_its_time(local_aws: LocalAws) -> None:
    del local_aws  # for its credentials
    (port,) = free_ports(1)
    settings = AwsSettings("us-east-1", f"http://127.0.0.1:{port}", timeout_seconds=1)
    seconds = iter(range(100))
    store = DynamoUsage("usage", settings, timer=lambda: next(seconds), sleep=lambda _: None)
    with pytest.raises(Unavailable):
        store.month(ADA, "2016-11")
    assert next(seconds) > 4


def failing_once(store: DynamoUsage, *, sent: bool) -> None:
    """Have each call's first request fail: `sent`, its answer is lost; else another transaction was in the way."""
    client: Any = store._client
    failed: set[bytes] = set()

    def fail(request: Any, **_: object) -> Any:
        kind = request.headers["x-amz-target"]
        if kind in failed:
            failed.remove(kind)
            return None
        failed.add(kind)
        if sent:
            client._endpoint.http_session.send(request)
            raise ReadTimeoutError(endpoint_url=request.url)
        word = "TransactionCanceledException" if b"TransactWriteItems" in kind else "TransactionConflictException"
        told = {"__type": f"com.amazonaws.dynamodb.v20120810#{word}", "CancellationReasons": [CONFLICT]}
        body = BytesIO(json.dumps(told).encode())
        headers: Any = {"content-type": "application/x-amz-json-1.0"}
        response: Any = AWSResponse(request.url, 400, headers, body)
        response._content = body.getvalue()
        return response

    client.meta.events.register_first("before-send.dynamodb", fail)


CONFLICT = {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}


@pytest.mark.aws
@pytest.mark.parametrize("sent", [False, True], ids=["in the way", "answer lost"])
def test_what_is_tried_again_counts_once(local_aws: LocalAws, *, sent: bool) -> None:
    settings = AwsSettings(endpoint_url=local_aws.dynamodb_endpoint)
    store = DynamoUsage(new_usage_table(local_aws), settings, sleep=lambda _: None)
    failing_once(store, sent=sent)
    credit(store, 500)
    made = usage(1, prepaid=True)
    reserved = store.reserve(hold_of(made, 50), per_minute=1, now=NOON)
    assert reserved.state == "held"
    assert store.reserve(hold_of(usage(2), 50), per_minute=1, now=NOON).state == "too_many"
    raised = store.raise_to(reserved.hold, 100, until=NOON + 999 * SECOND, now=NOON)
    assert (raised.state, store.account(ADA, now=NOON)) == ("held", Account(ADA, 400, 100))
    assert store.settle(made, keep_until=YEAR, hold=raised.hold, mark="batch", mark_until=YEAR) == "written"
    assert store.settle(usage(3), keep_until=YEAR, mark="batch", mark_until=YEAR) == "charged_before"
    refund = store.refund(ADA, made.call_id, at=NOON + 1, keep_until=YEAR)
    assert refund is not None
    assert store.records(ADA, "2016-11") == [made, refund]
    assert store.month(ADA, "2016-11") == Month(ADA, "2016-11").plus(made).plus(refund)
    assert store.account(ADA, now=NOON) == Account(ADA, 500, 0)
