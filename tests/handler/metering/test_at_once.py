"""Many at once, killed in the middle, and in any order: whatever happens, what was paid is what was answered."""

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.answer import Answer
from engine.errors import EngineError, NotFound, Unavailable
from engine.usage import Account, Grant, Month, UsageStore, month_of
from handler.settings_money import QuotaSettings
from tests.contracts.usage_bench import USAGE_ADAPTERS, UsageBench, new_usage_table, open_usage, usage_bench
from tests.depth import depth
from tests.handler.metering import paying_worker
from tests.handler.metering.bench import (
    ADA,
    COUNT,
    NOON,
    PRICES,
    SECOND,
    THREAD,
    Clock,
    Paged,
    credit,
    export,
    metered,
    unseen,
)
from tests.local_aws import LocalAws, free_ports

PREPAID = QuotaSettings(prepaid=True)
PRICE = PRICES.price_of("count_messages")


@pytest.fixture(params=USAGE_ADAPTERS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> UsageBench:
    return usage_bench(request, tmp_path)


def summed(store: UsageStore, month: str) -> Month:
    """The sum of a month's records, one by one."""
    total = Month("key:ada", month)
    for usage in store.records("key:ada", month):
        total = total.plus(usage)
    return total


def check_books(store: UsageStore, months: tuple[str, ...], granted: int, now: int) -> Account:
    """Hold every sum against every other one; the credit as it is."""
    taken = 0
    for month in months:
        assert summed(store, month) == store.month("key:ada", month)
        taken += sum(usage.charge for usage in store.records("key:ada", month) if usage.prepaid)
    account = store.account("key:ada", now=now)
    assert account.balance >= 0
    assert account.balance + account.held == granted - taken
    return account


def test_of_200_calls_at_once_with_credit_for_120_exactly_120_are_answered_and_charged(bench: UsageBench) -> None:
    credit(bench.store, 120 * PRICE)
    if bench.arguments[0] == "sqlite":
        command = [sys.executable, paying_worker.__file__, "100", *bench.arguments]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        answers = sum(int(process.communicate(timeout=120)[0]) for process in running)
        assert [process.returncode for process in running] == [0] * 2
    else:
        answers = paying_worker.answered(metered(bench.store, PREPAID), 200, threads=16)
    assert answers == 120
    account = check_books(bench.store, ("2016-11",), 120 * PRICE, NOON)
    month = bench.store.month("key:ada", "2016-11")
    assert (account, month.calls, month.spend) == (Account("key:ada", 0, 0), 120, 120 * PRICE)
    records = bench.store.records("key:ada", "2016-11")
    assert Counter((each.outcome, each.charge) for each in records) == {("ok", PRICE): 120}


def test_a_call_that_is_killed_after_it_reserved_costs_nothing_and_holds_nothing_for_long(bench: UsageBench) -> None:
    credit(bench.store, 3 * PRICE)
    command = [sys.executable, paying_worker.__file__, "hang", *bench.arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        assert bench.store.account("key:ada", now=NOON) == Account("key:ada", 2 * PRICE, PRICE)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert check_books(bench.store, ("2016-11",), 3 * PRICE, NOON) == Account("key:ada", 2 * PRICE, PRICE)
    assert bench.store.records("key:ada", "2016-11") == []
    before, after = NOON + 119 * SECOND, NOON + 120 * SECOND
    assert paying_worker.answered(metered(bench.store, PREPAID, clock=Clock(before)), 3) == 2
    assert check_books(bench.store, ("2016-11",), 3 * PRICE, after) == Account("key:ada", PRICE, 0)
    assert paying_worker.answered(metered(bench.store, PREPAID, clock=Clock(after)), 3) == 1
    assert check_books(bench.store, ("2016-11",), 3 * PRICE, after) == Account("key:ada", 0, 0)
    assert bench.store.month("key:ada", "2016-11").calls == 3


STEPS = st.one_of(
    st.tuples(st.just("count"), st.booleans()),
    st.tuples(st.just("unseen"), st.integers(0, 3)),
    st.tuples(st.just("page"), st.just(0)),
    st.tuples(st.just("nothing"), st.just(0)),
    st.tuples(st.just("export"), st.integers(0, 9)),
    st.tuples(st.just("grant"), st.integers(1, 90)),
    st.tuples(st.just("refund"), st.integers(0, 9)),
    st.tuples(st.just("killed"), st.integers(0, 3)),
    st.tuples(st.just("time"), st.sampled_from([1, 50, 130, 86_400, 20 * 86_400])),
)
MONTHS = tuple(month_of(NOON + n * 28 * 86_400 * SECOND) for n in range(40))


class _Killed(BaseException):
    """What a process that is gone raises: nothing after it is run."""


def play(store: UsageStore, steps: list[tuple[str, int]]) -> None:
    """One history, with the books checked after each step."""
    clock, granted, inner = Clock(), 0, Paged()
    prepaid = metered(store, PREPAID, inner=inner, clock=clock)
    billed = metered(store, inner=inner, clock=clock)
    seen: set[str] = set()
    for number, (what, how) in enumerate(steps):
        clock.now += 1
        inner.answer, inner.rows = None, 0
        app = prepaid if number % 3 else billed
        before = sum(store.month("key:ada", month).calls for month in sorted(seen))
        answers = 0
        try:
            if what == "count":
                if how:
                    inner.answer = _fails
                app.call(COUNT, ADA)
                answers = 1
            elif what in {"unseen", "page"}:
                told = app.call(unseen("s", how if what == "unseen" else None), ADA).object
                answers = 0 if told.get("repeated") else 1
            elif what == "nothing":
                inner.answer = _shows_nothing
                app.call(unseen("s"), ADA)
                answers = 1
            elif what == "export":
                inner.rows = how
                app.call(export(), ADA)
                answers = 1
            elif what == "grant":
                granted += how if store.grant(Grant("key:ada", f"grant {number}", how, clock.now)) else 0
            elif what == "refund":
                records = [usage for month in sorted(seen) for usage in store.records("key:ada", month)]
                if records:
                    charged = records[how % len(records)]
                    for _ in range(2):
                        store.refund("key:ada", charged.call_id, at=clock.now, keep_until=2**52)
            elif what == "killed":
                inner.answer = _dies
                # A killed call reaches neither its record nor the end of its hold.
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(app, "_failed", lambda *_: None)
                    app.call(THREAD, ADA)
            else:
                clock.now += how * SECOND
        except (EngineError, _Killed):
            answers = 0
        seen.add(month_of(clock.now))
        check_books(store, tuple(sorted(seen)), granted, clock.now)
        assert sum(store.month("key:ada", month).calls for month in sorted(seen)) == before + answers
    clock.now += 9_999 * SECOND
    assert check_books(store, tuple(sorted(seen)), granted, clock.now).held == 0


def _fails(*_: object) -> Answer:
    raise NotFound("unknown_message", "no message")


def _shows_nothing(*_: object) -> Answer:
    return Answer("found: 9 messages", {"shown": 0})


def _dies(*_: object) -> Answer:
    raise _Killed


@settings(max_examples=depth(400, 12), deadline=None, derandomize=True)
@given(steps=st.lists(STEPS, min_size=5, max_size=25))
def test_in_any_history_the_balance_is_never_negative_and_all_sums_agree(
    steps: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    play(open_usage("sqlite", str(tmp_path_factory.mktemp("usage") / "usage.sqlite")), steps)


@pytest.mark.aws
def test_the_same_in_dynamodb(local_aws: LocalAws) -> None:
    store: Any = open_usage("dynamodb", "another for each history", local_aws.dynamodb_endpoint)

    @settings(max_examples=depth(50, 3), deadline=None, derandomize=True)
    @given(steps=st.lists(STEPS, min_size=15, max_size=25))
    def histories(steps: list[tuple[str, int]]) -> None:
        table = new_usage_table(local_aws)
        store._table = table
        play(store, steps)

    histories()


@pytest.mark.aws
@pytest.mark.parametrize(
    ("quota", "request_kinds"),
    [
        (None, ["TransactWriteItems"]),
        (QuotaSettings(prepaid=True), ["UpdateItem", "TransactWriteItems"]),
        (QuotaSettings(calls_per_minute=60), ["UpdateItem", "TransactWriteItems"]),
        (QuotaSettings(prepaid=True, calls_per_minute=60), ["UpdateItem", "TransactWriteItems"]),
        (QuotaSettings(calls_per_month=60), ["GetItem", "TransactWriteItems"]),
    ],
)
def test_a_warm_call_costs_one_write_request_and_with_credit_or_a_minutes_quota_two(
    local_aws: LocalAws,
    capsys: pytest.CaptureFixture[str],
    quota: QuotaSettings | None,
    request_kinds: list[str],
) -> None:
    sent: list[str] = []
    store = open_usage("dynamodb", new_usage_table(local_aws), local_aws.dynamodb_endpoint, sent=sent.append)
    credit(store, 1_000)
    clock = Clock()
    app = metered(store, quota, clock=clock)
    app.call(COUNT, ADA)
    kinds: list[str] = []
    store._client.meta.events.register(  # type: ignore[attr-defined]  # the adapter's own client
        "before-call.dynamodb", lambda model, **_: kinds.append(model.name)
    )
    sent.clear()
    seconds = []
    for _ in range(10):
        clock.now += 30 * SECOND  # another minute with every second call
        began = time.perf_counter()
        app.call(COUNT, ADA)
        seconds.append(time.perf_counter() - began)
    assert (kinds, sent) == (request_kinds * 10, ["dynamodb"] * len(request_kinds) * 10)
    per_request = sorted(seconds)[5] * 1_000 / len(request_kinds)
    with capsys.disabled():
        sys.stdout.write(f" [{'+'.join(request_kinds)}: {per_request:.1f} ms a request, median] ")


@pytest.mark.aws
def test_a_table_out_of_reach_refuses_or_serves(local_aws: LocalAws) -> None:
    del local_aws  # for its credentials
    (port,) = free_ports(1)
    store = open_usage("dynamodb", "usage", f"http://127.0.0.1:{port}")
    store._deadline_seconds = 0.2  # type: ignore[attr-defined]  # nobody waits five seconds for a test
    with pytest.raises(Unavailable) as refused:
        metered(store, PREPAID).call(COUNT, ADA)
    assert refused.value.code == "metering_down"
    assert metered(store, PREPAID, serve=True).call(COUNT, ADA).text.startswith("found: 2")
    assert metered(store, serve=True).call(COUNT, ADA).text.startswith("found: 2")
