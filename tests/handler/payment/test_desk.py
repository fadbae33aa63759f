"""The desk alone, without a server in front: what needs a store that fails, a clock that jumps, a caller who leaves."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from anyio import to_thread

from engine.answer import Answer
from engine.errors import BadInput, EngineError, NotFound, Refused, Unavailable
from engine.payments import Payment, PaymentStore
from engine.requests import CountRequest, Criteria, ExportRequest, Request, SearchRequest, UnseenRequest
from engine.sight import Caller
from engine.usage import month_of
from handler.auth.policies import VISITOR
from handler.payment.desk import Desk, PaidCall
from handler.payment.register import Register
from handler.payment.results import PAYMENT, RECEIPT
from handler.settings_money import QuotaSettings
from handler.wiring import build_desk
from infra.sqlite_payments import SqlitePayments
from infra.sqlite_usage import SqliteUsage
from tests.handler.metering.bench import NOON, metered
from tests.handler.payment.facilitator import FacilitatorServer
from tests.handler.payment.shop import Payer, now, required, selling_settings
from tests.handler.small_app import SmallApp

pytestmark = pytest.mark.anyio

SEARCH = SearchRequest(criteria=Criteria(query="docker"))
EXPORT = ExportRequest(criteria=Criteria(query="docker"))


class Stall:
    """A desk over a small application, and the payments it keeps."""

    def __init__(self, facilitator: FacilitatorServer, folder: Path, **changes: Any) -> None:
        self.app: Any = SmallApp()
        self.store = SqlitePayments(folder / "payments.sqlite")
        made = build_desk(selling_settings(folder, facilitator, **changes), now)
        assert made is not None
        self.desk: Desk = made
        self.keep(self.store)

    def keep(self, store: PaymentStore) -> None:
        """Have payments kept in another store."""
        register = Register(store, now, 20.0)
        quotes = replace(self.desk._parts.quotes, owed=lambda export_id: register.owed(export_id, None).amount)
        self.desk._parts = replace(self.desk._parts, register=register, quotes=quotes)

    async def call(self, tool: str, request: Request, payment: Any = None) -> types.CallToolResult:
        meta: Any = None if payment is None else {PAYMENT: payment}
        params = types.CallToolRequestParams(name=tool, arguments={}, _meta=meta)

        def run(function: Callable[[], Any]) -> Awaitable[Any]:
            return to_thread.run_sync(function)

        return await self.desk.answer(PaidCall(params, request, Caller(VISITOR), self.app, run, shaped))

    async def signed(self, payer: Payer, tool: str, request: Request) -> dict[str, Any]:
        """A payment of what a call costs."""
        (asked,) = required(await self.call(tool, request)).accepts
        return payer.signed(asked)


def shaped(answer: Answer) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=answer.text)])


def text_of(result: types.CallToolResult) -> str:
    (first,) = result.content
    assert isinstance(first, types.TextContent)
    return first.text


@pytest.fixture
def stall(facilitator: FacilitatorServer, tmp_path: Path) -> Stall:
    return Stall(facilitator, tmp_path)


class Failing(PaymentStore):
    """A store in front of another that is gone for writes of one state, or for those that remove."""

    def __init__(self, inner: PaymentStore, state: str) -> None:
        self._inner = inner
        self._state = state

    def get(self, payment_id: str) -> Payment | None:
        return self._inner.get(payment_id)

    def put(self, payment: Payment, instead_of: str | None) -> bool:
        if payment.state == self._state:
            raise Unavailable("store_unreachable", "the store is out of reach")
        return self._inner.put(payment, instead_of)

    def remove(self, payment: Payment) -> bool:
        if self._state == "removed":
            raise Unavailable("store_unreachable", "the store is out of reach")
        return self._inner.remove(payment)


async def test_an_answer_that_came_too_late_is_not_settled(stall: Stall, facilitator: FacilitatorServer) -> None:
    payer = Payer(facilitator)
    payment = await stall.signed(payer, "search_messages", SEARCH)
    times = iter([0.0, 100.5])
    plain, stall.desk._parts = stall.desk._parts, replace(stall.desk._parts, timer=lambda: next(times))
    with pytest.raises(Unavailable, match="the answer was ready too late to be paid for"):
        await stall.call("search_messages", SEARCH, payment)
    assert payer.paid == []
    stall.desk._parts = plain
    assert RECEIPT in ((await stall.call("search_messages", SEARCH, payment)).meta or {})
    assert payer.paid == [2_000]


async def test_a_page_that_came_too_late_to_be_paid_for_was_never_shown(
    stall: Stall, facilitator: FacilitatorServer
) -> None:
    payer, page = Payer(facilitator), UnseenRequest(replace(SEARCH, session="s"))
    payment = await stall.signed(payer, "unseen_messages", page)
    stall.app.answer = lambda _request, _caller: Answer("page", {"session": "s", "batch": 4, "shown": 1})
    times = iter([0.0, 100.5])
    stall.desk._parts = replace(stall.desk._parts, timer=lambda: next(times))
    with pytest.raises(Unavailable, match="too late") as late:
        await stall.call("unseen_messages", page, payment)
    assert late.value.next_step == "call again with after_batch=3, or what this call recorded is never shown"
    assert payer.paid == []


async def test_a_call_that_dies_before_it_settles_costs_nothing(stall: Stall, facilitator: FacilitatorServer) -> None:
    payer = Payer(facilitator)
    payment = await stall.signed(payer, "search_messages", SEARCH)

    def die(_request: Request, _caller: Caller) -> Answer:
        raise SystemExit

    stall.app.answer = die
    # Nothing is cleaned up after a process that is killed: here its store is gone at that moment.
    stall.keep(Failing(stall.store, "removed"))
    with pytest.raises(SystemExit):
        await stall.call("search_messages", SEARCH, payment)
    stall.keep(stall.store)
    stall.app.answer = None
    told = required(await stall.call("search_messages", SEARCH, payment))
    assert told.error == "another call works on this payment"
    assert payer.paid == []
    another = await stall.signed(payer, "search_messages", SEARCH)
    assert RECEIPT in ((await stall.call("search_messages", SEARCH, another)).meta or {})
    assert payer.paid == [2_000]


async def test_a_call_that_dies_after_it_settled_is_answered_when_it_is_repeated(
    stall: Stall, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)
    payment = await stall.signed(payer, "search_messages", SEARCH)
    stall.keep(Failing(stall.store, "answered"))
    with pytest.raises(EngineError) as died:
        await stall.call("search_messages", SEARCH, payment)
    assert died.value.code == "payment_unavailable"
    assert payer.paid == [2_000]
    stall.keep(stall.store)
    # As long as the first call may live, it alone has the payment.
    told = required(await stall.call("search_messages", SEARCH, payment))
    assert told.error == "another call works on this payment"
    stall.desk._parts = replace(stall.desk._parts, register=Register(stall.store, lambda: now() + 26_000_000, 20.0))
    answered = await stall.call("search_messages", SEARCH, payment)
    assert text_of(answered).startswith("found: 2 messages")
    told = required(await stall.call("search_messages", SEARCH, payment))
    assert told.error == "this payment has bought its answer; sign another"
    assert payer.paid == [2_000]


async def test_a_caller_who_hangs_up_while_it_is_settled_can_fetch_the_answer(
    stall: Stall, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)
    payment = await stall.signed(payer, "search_messages", SEARCH)
    with anyio.CancelScope() as call:

        def hang_up(question: str, truly: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
            if question == "settle":
                loop.call_soon_threadsafe(call.cancel)
            return truly()

        loop: Any = asyncio_loop()
        facilitator.meddle = hang_up
        await stall.call("search_messages", SEARCH, payment)
    facilitator.meddle = None
    assert call.cancelled_caught
    assert payer.paid == [2_000]
    stall.desk._parts = replace(stall.desk._parts, register=Register(stall.store, lambda: now() + 26_000_000, 20.0))
    answered = await stall.call("search_messages", SEARCH, payment)
    assert text_of(answered).startswith("found: 2 messages")
    assert payer.paid == [2_000]


def asyncio_loop() -> Any:
    import asyncio  # noqa: PLC0415 - the back end of these tests

    return asyncio.get_running_loop()


async def test_a_store_that_is_down_lets_nobody_work(stall: Stall, facilitator: FacilitatorServer) -> None:
    payer = Payer(facilitator)
    payment = await stall.signed(payer, "search_messages", SEARCH)
    stall.keep(Failing(stall.store, "held"))
    with pytest.raises(Unavailable, match="out of reach"):
        await stall.call("search_messages", SEARCH, payment)
    stall.keep(Failing(stall.store, "settling"))
    with pytest.raises(Unavailable, match="out of reach"):
        await stall.call("search_messages", SEARCH, payment)
    assert payer.paid == []


async def test_a_long_export_is_paid_for_with_its_link(stall: Stall, facilitator: FacilitatorServer) -> None:
    payer, other = Payer(facilitator), Payer(facilitator)

    def export(request: Request, _: Caller) -> Answer:
        if isinstance(request, CountRequest):
            return Answer("", {"found": {"messages": 2_500}})
        return Answer("found: 2500 messages\nrunning: 9", {"found": {}, "running": True, "export": "E", "rows": 9})

    stall.app.answer = export
    begun = await stall.call("export_messages", EXPORT, await stall.signed(payer, "export_messages", EXPORT))
    assert text_of(begun) == "running, and not paid for yet: ask again with export=E, and pay for the link"
    poll = ExportRequest(export="E")
    still = await stall.call("export_messages", poll, await stall.signed(payer, "export_messages", poll))
    assert text_of(still) == text_of(begun)
    assert payer.paid == []
    stall.app.answer = lambda _request, _caller: Answer("link: L", {"link": "L", "rows": 2_500}, "L")
    with pytest.raises(NotFound, match="unknown or expired"):
        await stall.call("export_messages", poll, await stall.signed(other, "export_messages", poll))
    with pytest.raises(NotFound, match="unknown or expired"):
        await stall.call("export_messages", ExportRequest(export="another"))
    for _ in range(2):
        done = await stall.call("export_messages", poll, await stall.signed(payer, "export_messages", poll))
        assert text_of(done) == "link: L"
    # Three thousand rows at 10, and the call; the second link was free.
    assert (payer.paid, other.paid) == ([35_000], [])


def unsure(question: str, truly: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
    """Has a settlement done, and its answer lost."""
    told = truly()
    return (500, b"boom") if question == "settle" else told


async def test_an_empty_page_bought_a_batch_of_its_session_that_was_not_paid_for(
    stall: Stall, facilitator: FacilitatorServer
) -> None:
    payer, asked = Payer(facilitator), []

    def page(request: Request, _: Caller) -> Answer:
        asked.append(request)
        repeated: dict[str, Any] = {"shown": 1, "repeated": True}
        again = isinstance(request, UnseenRequest) and request.after_batch is not None
        return Answer("page", {"session": "s", "batch": 2} | (repeated if again else {"shown": 0}))

    stall.app.answer = page
    empty = UnseenRequest(replace(SEARCH, session="s"))
    payment = await stall.signed(payer, "unseen_messages", empty)
    facilitator.meddle = unsure
    required(await stall.call("unseen_messages", empty, payment))
    facilitator.meddle = None
    # Asked for again it is that empty page, not the batch that was the newest then.
    assert RECEIPT in ((await stall.call("unseen_messages", empty, payment)).meta or {})
    assert asked == [empty, empty]
    batch = UnseenRequest(replace(SEARCH, session="s"), after_batch=1)
    answered = await stall.call("unseen_messages", batch, await stall.signed(payer, "unseen_messages", batch))
    assert RECEIPT in (answered.meta or {})
    assert payer.paid == [2_000, 2_000]


async def test_a_link_that_was_paid_for_was_kept_back_when_that_could_not_be_noted(
    stall: Stall, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)
    stall.app.answer = lambda _request, _caller: Answer("link: L", {"link": "L", "rows": 1}, "L")
    Register(stall.store, now, 20.0).owe(payer.address.lower(), "E", 15_000)
    poll = ExportRequest(export="E")
    payment = await stall.signed(payer, "export_messages", poll)

    class Gone(Failing):
        def get(self, payment_id: str) -> Payment | None:
            if payer.paid and payment_id.startswith("export:"):
                raise Unavailable("store_unreachable", "the store is out of reach")
            return super().get(payment_id)

    stall.keep(Gone(stall.store, "none"))
    done = await stall.call("export_messages", poll, payment)
    assert (text_of(done), RECEIPT in (done.meta or {}), payer.paid) == ("link: L", True, [15_000])


@pytest.mark.parametrize("later", [{"running": True, "export": "E"}, {"link": "L", "rows": 1_001}])
async def test_a_payment_that_may_have_moved_was_forgotten_when_its_export_ran_on_or_grew(
    stall: Stall, facilitator: FacilitatorServer, later: dict[str, Any]
) -> None:
    payer = Payer(facilitator)
    told: list[dict[str, Any]] = []

    def export(request: Request, _: Caller) -> Answer:
        if isinstance(request, CountRequest):
            return Answer("", {"found": {"messages": 1_000}})
        return Answer("export", told.pop(0))

    stall.app.answer = export
    told[:] = [{"link": "L", "rows": 1_000}, later, {"link": "L", "rows": 1_000}]
    payment = await stall.signed(payer, "export_messages", EXPORT)
    facilitator.meddle = unsure
    required(await stall.call("export_messages", EXPORT, payment))
    facilitator.meddle = None
    second = await stall.call("export_messages", EXPORT, payment)
    if "running" in later:
        assert text_of(second).startswith("running, and not paid for yet")
        second = await stall.call("export_messages", EXPORT, payment)
    assert (RECEIPT in (second.meta or {}), payer.paid) == (True, [15_000])


@pytest.mark.parametrize("kind", [BadInput, NotFound])
async def test_a_quote_told_whoever_had_not_paid_which_authors_there_are(
    stall: Stall, facilitator: FacilitatorServer, kind: type[EngineError]
) -> None:
    payer = Payer(facilitator)

    def unknown(_request: Request, _caller: Caller) -> Answer:
        raise kind("unknown_value", "unknown author 'Zura'", next_step="did you mean 'Zara'?")

    stall.app.answer = unknown
    quoted = required(await stall.call("export_messages", EXPORT))
    assert "Zara" not in str(quoted)
    assert [asked.amount for asked in quoted.accepts] == ["15000"]
    with pytest.raises(kind, match="unknown author"):
        await stall.call("export_messages", EXPORT, payer.signed(quoted.accepts[0]))
    assert payer.paid == []


async def test_a_quote_of_an_export_whose_rows_cost_nothing_counted_them(
    facilitator: FacilitatorServer, tmp_path: Path
) -> None:
    stall = Stall(facilitator, tmp_path)
    prices = replace(stall.desk._parts.quotes.prices, per_row=0)
    stall.desk._parts = replace(stall.desk._parts, quotes=replace(stall.desk._parts.quotes, prices=prices))
    assert [asked.amount for asked in required(await stall.call("export_messages", EXPORT)).accepts] == ["5000"]
    assert stall.app.calls == []


async def test_an_export_that_outgrew_its_payment_is_quoted_anew(stall: Stall, facilitator: FacilitatorServer) -> None:
    payer = Payer(facilitator)
    rows = {"counted": 1_000, "written": 1_001}

    def export(request: Request, _: Caller) -> Answer:
        if isinstance(request, CountRequest):
            return Answer("", {"found": {"messages": rows["counted"]}})
        rows["counted"] = rows["written"]
        return Answer("link: L", {"link": "L", "rows": rows["written"]}, "L")

    stall.app.answer = export
    told = required(await stall.call("export_messages", EXPORT, await stall.signed(payer, "export_messages", EXPORT)))
    assert told.error == "there are more rows by now than were paid for"
    assert [asked.amount for asked in told.accepts] == ["25000"]
    assert payer.paid == []


async def test_a_payer_of_whom_no_policy_speaks_is_refused_before_anything(
    stall: Stall, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)
    payment = await stall.signed(payer, "search_messages", SEARCH)
    asked_before = len(facilitator.asked)
    settings = selling_settings(Path("unused"), facilitator)
    only = settings.model_copy(
        update={"policies": (settings.policies[0].model_copy(update={"callers": ("x402:0x1*", "*")}),)}
    )
    desk = build_desk(only, now)
    assert desk is not None
    stall.desk._parts = replace(stall.desk._parts, policies=desk._parts.policies)
    if payer.name.startswith("x402:0x1"):
        return
    with pytest.raises(EngineError, match="no policy is for this payer"):
        await stall.call("search_messages", SEARCH, payment)
    assert (len(facilitator.asked), payer.paid) == (asked_before, [])


async def test_what_is_sold_is_recorded_for_whoever_paid_and_billed_to_nobody(
    stall: Stall, facilitator: FacilitatorServer, tmp_path: Path
) -> None:
    payer = Payer(facilitator)
    usage, month = SqliteUsage(tmp_path / "usage.sqlite"), month_of(NOON)
    empty = QuotaSettings(prepaid=True, calls_per_month=2)
    stall.app = metered(usage, empty)
    for _ in range(2):
        answered = await stall.call("search_messages", SEARCH, await stall.signed(payer, "search_messages", SEARCH))
        assert RECEIPT in (answered.meta or {})
    with pytest.raises(Refused, match="month"):
        await stall.call("search_messages", SEARCH, await stall.signed(payer, "search_messages", SEARCH))
    booked = usage.month(payer.name, month)
    assert (booked.calls, booked.spend, payer.paid) == (2, 0, [2_000, 2_000])


async def test_the_facilitator_gets_the_header_it_wants(facilitator: FacilitatorServer, tmp_path: Path) -> None:
    payer = Payer(facilitator)
    stall = Stall(facilitator, tmp_path, facilitator_authorization="Bearer of-a-facilitator")
    facilitator.headers.clear()
    await stall.call("search_messages", SEARCH, await stall.signed(payer, "search_messages", SEARCH))
    assert facilitator.headers == ["Bearer of-a-facilitator"] * 2
    assert payer.paid == [2_000]
