"""What a call is charged, what refuses it, and what becomes of it while the store is down."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine.answer import Answer
from engine.errors import EngineError, NotFound, Refused, Unavailable
from engine.requests import CountRequest, Criteria, ExportRequest, Request, SearchRequest
from engine.sight import Caller
from engine.tally import add, counting, note_snapshot
from engine.usage import Account, Month, Usage, UsageStore
from handler.metering.prices import Prices
from handler.metering.quotas import UNLIMITED, Quota, Quotas
from handler.settings_money import QuotaSettings
from infra.sqlite_usage import SqliteUsage
from tests.handler.metering.bench import (
    ADA,
    COUNT,
    NOON,
    SECOND,
    THREAD,
    Clock,
    Paged,
    credit,
    export,
    metered,
    unseen,
)

PREPAID = QuotaSettings(prepaid=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUsage]:
    made = SqliteUsage(tmp_path / "usage.sqlite")
    yield made
    made.close()


def told(store: UsageStore, caller: Caller = ADA, month: str = "2016-11") -> list[tuple[str, str, int]]:
    """Tool, outcome and charge of each record, after they were held against their month."""
    records = store.records(caller.caller_id, month)
    summed = Month(caller.caller_id, month)
    for usage in records:
        summed = summed.plus(usage)
    assert summed == store.month(caller.caller_id, month)
    return [(usage.tool.partition("_")[0], usage.outcome, usage.charge) for usage in records]


def sequenced(clock: Clock, app: Any, *requests: Request) -> list[str]:
    """What becomes of calls, each a second after the last."""
    out = []
    for request in requests:
        try:
            out.append(app.call(request, ADA).text.partition("\n")[0])
        except EngineError as error:
            out.append(error.code)
        clock.now += SECOND
    return out


def test_every_call_writes_one_record_of_what_it_did(store: SqliteUsage) -> None:
    def work(request: Request, _: Caller) -> Answer:
        add("rows_scanned", 70)
        add("bytes_scanned", 700)
        add("s3_requests", 2)
        add("dynamodb_requests", 3)
        note_snapshot(NOON - 5)
        return Answer("ж" if isinstance(request, CountRequest) else "two", {})

    ticks = iter((1.0, 1.0421))
    app = metered(store, inner=Paged(answer=work))
    app._timer = lambda: next(ticks)
    with counting():
        app.call(COUNT, ADA)
    (record,) = store.records("key:ada", "2016-11")
    assert replace(record, call_id="") == Usage(
        call_id="",
        caller_id="key:ada",
        tool="count_messages",
        began_at=NOON,
        outcome="ok",
        charge=10,
        milliseconds=42,
        rows_scanned=70,
        bytes_scanned=700,
        bytes_returned=2,
        s3_requests=2,
        dynamodb_requests=3,
        snapshot_at=NOON - 5,
    )


def test_errors_are_free_and_nothing_found_costs_what_something_found_does(store: SqliteUsage) -> None:
    def work(request: Request, _: Caller) -> Answer:
        if not isinstance(request, CountRequest):
            raise NotFound("unknown_message", "no message")
        if request.criteria.query == "broken":
            raise ZeroDivisionError
        return Answer("found: 0 messages", {"found": {"messages": 0}})

    clock = Clock()
    app = metered(store, inner=Paged(answer=work), clock=clock)
    assert sequenced(clock, app, COUNT, THREAD) == ["found: 0 messages", "unknown_message"]
    with pytest.raises(ZeroDivisionError):
        app.call(CountRequest(Criteria(query="broken")), ADA)
    assert told(store) == [("count", "ok", 10), ("open", "unknown_message", 0), ("count", "internal", 0)]
    month = store.month("key:ada", "2016-11")
    assert (month.calls, month.errors, month.spend) == (1, 2, 10)


def test_a_repeat_of_a_batch_that_was_charged_is_free(store: SqliteUsage) -> None:
    clock = Clock()
    app = metered(store, clock=clock)
    sequenced(clock, app, unseen("s"), unseen("s"), unseen("s", 0), unseen("s", 1), unseen("s", 1))
    assert [outcome for _, outcome, _ in told(store)] == ["ok", "ok", "repeat", "repeat", "repeat"]
    assert store.month("key:ada", "2016-11").spend == 60


def test_a_repeat_of_a_batch_that_was_not_charged_costs_its_price_once(store: SqliteUsage) -> None:
    clock, inner = Clock(), Paged(batches={"s": 1})  # claimed by a call that died before it was charged
    app = metered(store, inner=inner, clock=clock)
    sequenced(clock, app, unseen("s", 0), unseen("s", 0))
    assert told(store) == [("unseen", "ok", 30), ("unseen", "repeat", 0)]


def showing_nothing(request: Request, _: Caller) -> Answer:
    """Nothing, or nothing new."""
    if isinstance(request, ExportRequest):
        return Answer("found: 0 messages", {"rows": 0})
    return Answer("found: 9 messages", {"shown": 0})


def test_an_answer_that_showed_nothing_cost_more_than_a_count_which_says_as_much(store: SqliteUsage) -> None:
    credit(store, 1_000)
    search = SearchRequest(Criteria(query="nowhere"))
    clock = Clock()
    app = metered(store, PREPAID, inner=Paged(answer=showing_nothing), clock=clock)
    sequenced(clock, app, search, unseen("s"), export(), COUNT)
    assert told(store) == [("search", "ok", 10), ("unseen", "ok", 10), ("export", "ok", 10), ("count", "ok", 10)]
    assert store.account("key:ada", now=clock.now) == Account("key:ada", 960, 0)
    dear = Prices({"count_messages": 500, "search_messages": 20})
    sequenced(clock, metered(store, PREPAID, inner=Paged(answer=showing_nothing), clock=clock, prices=dear), search)
    assert told(store)[-1] == ("search", "ok", 20)


def test_an_empty_page_was_free_as_if_it_were_its_sessions_newest_batch_again(store: SqliteUsage) -> None:
    clock, inner = Clock(), Paged()
    app = metered(store, inner=inner, clock=clock)
    sequenced(clock, app, unseen("s"))
    inner.answer = showing_nothing
    sequenced(clock, app, unseen("s"), unseen("s"))
    assert told(store) == [("unseen", "ok", 30), ("unseen", "ok", 10), ("unseen", "ok", 10)]


def test_an_empty_page_paid_for_a_batch_of_its_session_that_was_not_charged(store: SqliteUsage) -> None:
    clock = Clock()
    inner = Paged(answer=showing_nothing, batches={"s": 1})  # claimed by a call that died before it was charged
    app = metered(store, inner=inner, clock=clock)
    sequenced(clock, app, unseen("s"))
    inner.answer = None
    sequenced(clock, app, unseen("s", 0))
    assert told(store) == [("unseen", "ok", 10), ("unseen", "ok", 30)]
    with pytest.raises(Unavailable) as refused:
        metered(down(store, "settle"), inner=Paged(answer=showing_nothing, batches={"s": 4})).call(unseen("s"), ADA)
    assert refused.value.next_step == "call again"


def test_a_lost_answer_returns_even_when_everything_is_used_up(store: SqliteUsage) -> None:
    clock = Clock()
    credit(store, 30)
    quota = QuotaSettings(prepaid=True, calls_per_month=1)
    app = metered(store, quota, clock=clock)
    words = sequenced(clock, app, unseen("s"), unseen("s"), unseen("s", 0))
    assert [word.partition(":")[0] for word in words] == ["found", "quota_exceeded", "found"]
    assert told(store) == [("unseen", "ok", 30), ("unseen", "repeat", 0)]


def test_a_batch_of_another_callers_session_is_not_taken_for_paid(store: SqliteUsage) -> None:
    app = metered(store)
    app.call(unseen("s"), ADA)
    app.call(unseen("s", 0), Caller("key:bob"))
    assert told(store, Caller("key:bob")) == [("unseen", "ok", 30)]


def test_a_call_is_refused_before_any_work_when_credit_does_not_cover_it(store: SqliteUsage) -> None:
    credit(store, 75)
    clock, inner = Clock(), Paged()
    app = metered(store, PREPAID, inner=inner, clock=clock)
    assert sequenced(clock, app, THREAD, THREAD, unseen("s"), COUNT)[1:] == [
        "credit_exhausted",
        "found: 2 messages",
        "credit_exhausted",
    ]
    assert len(inner.calls) == 2
    assert store.account("key:ada", now=clock.now) == Account("key:ada", 5, 0)
    with pytest.raises(Refused) as refused:
        app.call(COUNT, ADA)
    assert refused.value.to_text() == (
        "credit_exhausted: this call of count_messages costs $0.00001, and the credit is $0.000005; "
        "ask whoever runs this server for credit"
    )


@pytest.mark.parametrize(
    ("quota", "calls", "words"),
    [
        (
            QuotaSettings(calls_per_minute=2),
            2,
            "quota_exceeded: 2 calls a minute are used up; this resets at 2016-11-30T12:01:00Z",
        ),
        (
            QuotaSettings(calls_per_month=3),
            3,
            "quota_exceeded: 3 calls a month are used up; this resets at 2016-12-01T00:00:00Z",
        ),
        (
            QuotaSettings(bytes_per_month=33),
            2,
            "quota_exceeded: 33 bytes a month are used up; this resets at 2016-12-01T00:00:00Z",
        ),
        (
            QuotaSettings(spend_per_month=45),
            4,
            (
                "quota_exceeded: $0.00004 of $0.000045 a month are spent, and this costs $0.00001; "
                "this resets at 2016-12-01T00:00:00Z"
            ),
        ),
    ],
)
def test_a_quota_refuses_before_any_work_and_says_when_it_resets(
    store: SqliteUsage, quota: QuotaSettings, calls: int, words: str
) -> None:
    inner, clock = Paged(), Clock()
    app = metered(store, quota, inner=inner, clock=clock)
    for _ in range(calls):
        app.call(COUNT, ADA)
    with pytest.raises(Refused) as refused:
        app.call(COUNT, ADA)
    assert refused.value.to_text() == words
    assert len(inner.calls) == calls
    app.call(COUNT, Caller("key:bob"))
    clock.now = NOON + 60 * SECOND if quota.calls_per_minute else NOON + 12 * 3_600 * SECOND
    app.call(COUNT, ADA)


def test_errors_and_repeats_count_against_the_minute_and_not_against_the_month(store: SqliteUsage) -> None:
    def work(request: Request, caller: Caller) -> Answer:
        if request == THREAD:
            raise NotFound("unknown_message", "no message")
        return Paged().call(request, caller)

    app = metered(store, QuotaSettings(calls_per_minute=2), inner=Paged(answer=work))
    for _ in range(2):
        with pytest.raises(NotFound):
            app.call(THREAD, ADA)
    with pytest.raises(Refused, match="a minute"):
        app.call(THREAD, ADA)
    clock = Clock(NOON + 60 * SECOND)
    app = metered(store, QuotaSettings(calls_per_month=1, calls_per_minute=9), clock=clock)
    words = sequenced(clock, app, THREAD, unseen("s", 0))
    assert words == ["found: 1 messages", "quota_exceeded"]


def test_the_first_quota_that_fits_a_caller_counts() -> None:
    quotas = Quotas(
        (
            QuotaSettings(callers=("key:ad?",), calls_per_minute=5),
            QuotaSettings(callers=("key:*", "iam:*"), prepaid=True),
        )
    )
    assert [quotas.of(name) for name in ("key:ada", "key:bob", "local")] == [
        Quota(calls_per_minute=5),
        Quota(prepaid=True),
        UNLIMITED,
    ]


def test_an_export_costs_by_row_and_reserves_it_before_the_file_is_written(store: SqliteUsage) -> None:
    credit(store, 50 + 3 * 7)
    held: list[Account] = []

    def work(*_: object) -> Answer:
        held.append(store.account("key:ada", now=NOON))
        return Answer("link", {"rows": 3})

    app = metered(store, PREPAID, inner=Paged(answer=work, rows=3))
    app.call(export(), ADA)
    assert held == [Account("key:ada", 0, 71)]
    assert (told(store), store.account("key:ada", now=NOON).balance) == ([("export", "ok", 71)], 0)


def test_an_export_that_credit_does_not_cover_writes_nothing_and_costs_nothing(store: SqliteUsage) -> None:
    credit(store, 50 + 3 * 7 - 1)
    inner = Paged(rows=3)
    app = metered(store, PREPAID, inner=inner)
    with pytest.raises(Refused, match="costs") as refused:
        app.call(export(), ADA)
    assert (refused.value.code, inner.calls) == ("credit_exhausted", [])
    assert told(store) == [("export", "credit_exhausted", 0)]
    assert store.account("key:ada", now=NOON) == Account("key:ada", 70, 0)


def test_an_export_beyond_the_quota_of_spend_writes_nothing(store: SqliteUsage) -> None:
    inner = Paged(rows=3)
    app = metered(store, QuotaSettings(spend_per_month=70), inner=inner)
    with pytest.raises(Refused, match="a month are spent"):
        app.call(export(), ADA)
    assert inner.calls == []
    app = metered(store, QuotaSettings(spend_per_month=71), inner=inner)
    app.call(export(), ADA)
    assert sorted(charge for *_, charge in told(store)) == [0, 71]


def test_how_far_an_export_is_costs_nothing_and_one_that_failed_is_given_back(store: SqliteUsage) -> None:
    credit(store, 1_000)

    def work(request: Request, _: Caller) -> Answer:
        if request == export():
            return Answer("running", {"running": True, "export": "id", "rows": 3})
        if clock.now > NOON + 10 * SECOND:
            raise Unavailable("export_failed", "the export could not be written")
        return Answer("running", {"running": True, "export": "id", "rows": 3})

    clock = Clock()
    app = metered(store, PREPAID, inner=Paged(answer=work, rows=3), clock=clock)
    assert sequenced(clock, app, export(), export("id")) == ["running", "running"]
    assert store.account("key:ada", now=clock.now).balance == 929
    clock.now += 20 * SECOND
    assert sequenced(clock, app, export("id"), export("id")) == ["export_failed", "export_failed"]
    assert told(store)[:3] == [("export", "ok", 71), ("export", "progress", 0), ("export", "export_failed", 0)]
    assert sorted(told(store)[3:]) == [("export", "export_failed", 0), ("export", "refund", -71)]
    assert store.account("key:ada", now=clock.now) == Account("key:ada", 1_000, 0)


@pytest.mark.parametrize(
    "quota",
    [QuotaSettings(calls_per_month=1), QuotaSettings(bytes_per_month=7), QuotaSettings(spend_per_month=71)],
)
def test_an_export_that_was_paid_for_could_not_be_fetched_when_the_month_was_used_up(
    store: SqliteUsage, quota: QuotaSettings
) -> None:
    def work(request: Request, _: Caller) -> Answer:
        if request == export():
            return Answer("running", {"running": True, "export": "id", "rows": 0})
        return Answer("link", {"link": "L", "rows": 3})

    clock = Clock()
    app = metered(store, quota, inner=Paged(answer=work, rows=3), clock=clock)
    assert sequenced(clock, app, export(), export("id"), COUNT) == ["running", "link", "quota_exceeded"]
    assert told(store) == [("export", "ok", 71), ("export", "progress", 0)]


def test_a_call_belongs_to_the_month_it_began_in_though_it_ends_in_the_next(store: SqliteUsage) -> None:
    def work(*_: object) -> Answer:
        clock.now += SECOND
        return Answer("late", {})

    clock = Clock(NOON + 12 * 3_600 * SECOND - 1)
    app = metered(store, inner=Paged(answer=work), clock=clock)
    app.call(COUNT, ADA)
    app.call(COUNT, ADA)
    assert (len(told(store)), len(told(store, month="2016-12"))) == (1, 1)


def test_a_call_that_outlives_its_reservation_and_the_credit_is_not_answered(store: SqliteUsage) -> None:
    credit(store, 10)

    def work(*_: object) -> Answer:
        clock.now += 200 * SECOND
        metered(store, PREPAID, clock=clock).call(COUNT, ADA)
        return Answer("too late", {})

    clock = Clock()
    with pytest.raises(Refused) as refused:
        metered(store, PREPAID, inner=Paged(answer=work), clock=clock).call(COUNT, ADA)
    assert refused.value.code == "credit_exhausted"
    assert [charge for *_, charge in told(store)] == [0, 10]
    assert store.account("key:ada", now=clock.now) == Account("key:ada", 0, 0)


def test_a_page_that_was_claimed_and_that_credit_ran_out_for_was_never_shown(store: SqliteUsage) -> None:
    credit(store, 30)

    def work(*_: object) -> Answer:
        clock.now += 200 * SECOND
        metered(store, PREPAID, clock=clock).call(COUNT, ADA)
        return Answer("too late", {"shown": 1})

    clock = Clock()
    with pytest.raises(Refused) as refused:
        metered(store, PREPAID, inner=Paged(answer=work, batches={"s": 4}), clock=clock).call(unseen("s"), ADA)
    assert refused.value.next_step == (
        "ask whoever runs this server for credit, then call again with after_batch=4, "
        "or what this call recorded is never shown"
    )
    credit(store, 300)
    assert (
        metered(store, PREPAID, inner=Paged(batches={"s": 5}), clock=clock).call(unseen("s", 4), ADA).object["batch"]
        == 5
    )
    assert sorted(charge for *_, charge in told(store)) == [0, 10, 30]


def test_the_canary_is_recorded_and_pays_nothing(store: SqliteUsage) -> None:
    canary = Caller("canary")
    metered(store, PREPAID, inner=Paged(rows=3)).call(COUNT, canary)
    assert told(store, canary) == [("count", "ok", 0)]


@dataclass
class Down:
    """A store that cannot be reached by the methods named."""

    inner: UsageStore
    methods: frozenset[str]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def fail(*_: object, **__: object) -> Any:
            raise Unavailable("store_unreachable", "the store did not answer as it should", detail="Timeout")

        return fail if name in self.methods else getattr(self.inner, name)


def down(store: UsageStore, *methods: str) -> Any:
    return Down(store, frozenset(methods))


@pytest.mark.parametrize("method", ["reserve", "settle"])
def test_while_the_store_is_down_a_call_is_refused(store: SqliteUsage, method: str) -> None:
    credit(store, 100)
    inner = Paged()
    app = metered(down(store, method), PREPAID, inner=inner)
    with pytest.raises(Unavailable) as refused:
        app.call(COUNT, ADA)
    assert refused.value.to_text() == (
        "metering_down: the call could not be metered, so it is not answered; call again"
    )
    assert len(inner.calls) == (method == "settle")
    assert told(store) == []


@pytest.mark.parametrize("method", ["reserve", "settle", "month", "marked"])
def test_while_the_store_is_down_a_call_is_served_and_logged_by_a_setting(
    store: SqliteUsage, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    credit(store, 100)
    quota = QuotaSettings(prepaid=True, calls_per_month=9)
    app = metered(down(store, method), quota, serve=True)
    with counting() as tally, caplog.at_level(logging.WARNING):
        answer = app.call(unseen("s", 0), ADA)
    assert answer.text.startswith("found: ")
    assert tally.counts["unmetered"] == 1
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == f"unmetered: a call of unseen_messages by key:ada at {NOON}, priced 30: Timeout"
    assert told(store) == []
    assert store.account("key:ada", now=NOON + 999 * SECOND) == Account("key:ada", 100, 0)


def test_a_page_that_was_claimed_and_could_not_be_charged_is_asked_for_again(store: SqliteUsage) -> None:
    inner = Paged(batches={"s": 4})
    with pytest.raises(Unavailable, match="could not be metered") as refused:
        metered(down(store, "settle"), inner=inner).call(unseen("s"), ADA)
    assert refused.value.next_step == "call again with after_batch=4, or what this call recorded is never shown"
    assert metered(store, inner=inner).call(unseen("s", 4), ADA).object["repeated"]
    assert told(store) == [("unseen", "ok", 30)]


def test_an_error_stays_what_it_is_when_it_cannot_be_recorded(store: SqliteUsage) -> None:
    def work(*_: object) -> Answer:
        raise NotFound("unknown_message", "no message")

    with pytest.raises(NotFound):
        metered(down(store, "settle"), inner=Paged(answer=work)).call(THREAD, ADA)


def test_an_export_is_refused_or_served_when_its_rows_cannot_be_reserved(store: SqliteUsage) -> None:
    credit(store, 1_000)
    inner = Paged(rows=3)
    with pytest.raises(Unavailable) as refused:
        metered(down(store, "raise_to"), PREPAID, inner=inner).call(export(), ADA)
    assert (refused.value.code, inner.calls) == ("metering_down", [])
    with counting() as tally:
        metered(down(store, "raise_to"), PREPAID, inner=inner, serve=True).call(export(), ADA)
    assert (tally.counts["unmetered"], len(inner.calls)) == (1, 1)
    assert told(store) == [("export", "metering_down", 0)]


def test_all_but_tool_calls_pass_unmetered(store: SqliteUsage) -> None:
    app = metered(store)
    assert app.instructions(ADA).startswith("Hayfork searches tests")
    assert app.corpus(ADA)["found"] == {"messages": 4}
    assert app.limits == Paged().limits
    with pytest.raises(NotImplementedError):
        app.refresh()
    with pytest.raises(NotImplementedError):
        app.verify()
    with pytest.raises(NotImplementedError):
        app.finish_export("id")
    assert told(store) == []
