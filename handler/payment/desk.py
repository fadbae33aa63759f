"""The way of a call that is paid for: quoted, checked, worked, settled, answered; in this order.

Decides that no work is done for a payment that would not go through, that nothing is settled but for an answer, that
nothing is answered but for a settlement, and that of one payment's calls at most one answers. Must never know how a
tool works.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import anyio
import mcp_types as types
from anyio.lowlevel import checkpoint_if_cancelled
from x402.schemas import PaymentRequirements

from engine.answer import Answer
from engine.errors import BadInput, NotFound, Refused, Unavailable, quoted
from engine.payments import Payment
from engine.requests import ExportRequest, Request, UnseenRequest
from engine.seen import digest
from engine.sight import Caller
from handler.app import App
from handler.auth.identity import Identity
from handler.auth.policies import VISITOR, Policies, payer_name
from handler.payment.facilitator import Counter, Facilitator, Settled
from handler.payment.offer import Declined, Offer, check_offer, read_offer
from handler.payment.quote import Quote, Quotes
from handler.payment.register import Register
from handler.payment.results import PAYMENT, failed, receipt, required, with_receipt
from handler.payment.terms import Terms

__all__ = ["Desk", "DeskParts", "PaidCall"]

_SECOND = 1_000_000

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PaidCall:
    """One call of a visitor. `run` runs a function in a thread, `shape` makes a result of an answer."""

    params: types.CallToolRequestParams
    request: Request
    visitor: Caller
    app: App
    run: "Callable[[Callable[[], Any]], Awaitable[Any]]"
    shape: Callable[[Answer], types.CallToolResult]

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.params.name

    @property
    def offered(self) -> Any:
        """The payment as it came, `None` without one."""
        meta: Any = self.params.meta
        return meta.get(PAYMENT) if isinstance(meta, dict) else None


@dataclass(frozen=True, slots=True)
class DeskParts:
    """What a desk is made of. `clock` gives microseconds since 1970, `timer` seconds since whenever.

    A settlement takes at most `settle_seconds`, and is not begun unless it ends within `call_seconds` of the call.
    """

    terms: Terms
    quotes: Quotes
    register: Register
    facilitator: Facilitator
    policies: Policies
    clock: Callable[[], int]
    settle_seconds: float
    call_seconds: float
    timer: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class _Order:
    """A call with its payment: who pays how much, and which steps of it were taken before."""

    call: PaidCall
    offer: Offer
    caller: Caller
    quote: Quote
    started: float
    digest: str
    left_over: Payment | None

    @property
    def request(self) -> Request:
        """What to work on: a page whose settlement is unknown is made again, not the next one."""
        asked = self.call.request
        if self.left_over is None or not self.left_over.batch or not isinstance(asked, UnseenRequest):
            return asked
        return replace(asked, after_batch=self.left_over.batch - 1)


class Desk:
    """Takes the calls of visitors, one desk per server."""

    def __init__(self, parts: DeskParts) -> None:
        self._parts = parts

    def serves(self, caller: Caller) -> bool:
        """Whether a caller is one who pays for each call."""
        return caller.caller_id == VISITOR

    async def answer(self, call: PaidCall) -> types.CallToolResult:
        """The result of a call: its answer with a receipt, what to pay, or why a payment bought nothing.

        Raises:
            EngineError: what the call raises; nothing was paid.
        """
        started = self._parts.timer()
        if call.offered is None:
            quote = await self._quote(call, call.visitor)
            return required(call.tool, self._asked(quote), f"{call.tool} is paid for by call")
        try:
            offer = read_offer(call.offered, self._parts.terms)
        except Declined as declined:
            return await self._declined(call, call.visitor, declined)
        caller = self._caller(call, offer)
        try:
            return await self._taken(call, offer, caller, started)
        except Declined as declined:
            return await self._declined(call, caller, declined)

    def _caller(self, call: PaidCall, offer: Offer) -> Caller:
        caller = self._parts.policies.public(Identity((payer_name(offer.payer),)))
        if caller is None:
            raise Refused("not_allowed", "no policy is for this payer", next_step="pay from another address")
        if not caller.has(call.tool):
            raise BadInput("unknown_tool", f"no tool is called {quoted(call.tool)}", next_step="list the tools")
        return caller

    async def _taken(self, call: PaidCall, offer: Offer, caller: Caller, started: float) -> types.CallToolResult:
        parts = self._parts
        wanted = f"{call.tool}:{digest(call.request)}"
        left_over = await _in(call, lambda: parts.register.left_over(offer, wanted))
        if left_over is None:
            quote = await self._quote(call, caller)
            check_offer(offer, self._asked(quote), parts.clock() // _SECOND)
        else:
            quote = parts.quotes.covered(offer.amount)
        order = _Order(call, offer, caller, quote, started, wanted, left_over)
        async with parts.facilitator.counter() as counter:
            if left_over is None:
                await counter.verify(offer, self._asked(quote))
                held = await _in(call, lambda: parts.register.hold(offer, wanted))
            else:
                held = await _in(call, lambda: parts.register.settling(left_over, left_over.batch))
            try:
                answer = await self._worked(order)
            except BaseException:
                await self._dropped(order, held)
                raise
            return await self._sold(order, counter, held, answer)

    async def _worked(self, order: _Order) -> Answer:
        call = order.call
        if isinstance(call.request, ExportRequest) and call.request.export is not None:
            export_id = call.request.export
            await _in(call, lambda: self._parts.register.owed(export_id, order.offer.payer))
        answer: Answer = await _in(call, lambda: call.app.call(order.request, order.caller))
        return answer

    async def _sold(self, order: _Order, counter: Counter, held: Payment, answer: Answer) -> types.CallToolResult:
        """The answer for its money, or for none where it is free."""
        call, register, payer = order.call, self._parts.register, order.offer.payer
        said = answer.object
        # A page that shows nothing is no batch: it names the newest of its session, which another call made.
        batch = said.get("batch", 0) if _session_of(call.request) is not None and said.get("shown") else 0
        try:
            result = call.shape(answer)
            unpaid = await self._for_nothing(order, held, answer, result)
            if unpaid is not None:
                return unpaid
            self._check_time(order, batch)
            held = await _in(call, lambda: register.settling(held, batch))
        except BaseException:
            await self._dropped(order, held)
            raise
        requirement = self._asked(order.quote)
        # Whoever hangs up now has paid, or not; that must become known.
        with anyio.CancelScope(shield=True):
            settled = await counter.settle(order.offer, requirement)
            if order.left_over is not None and settled.spent_before:
                settled = Settled("paid")
            if settled.outcome != "paid":
                return await self._unpaid(order, held, settled, batch)
        # And whoever hung up meanwhile is not answered: the same payment may fetch the answer.
        await checkpoint_if_cancelled()
        await _in(call, lambda: self._closed(order, held, said))
        return with_receipt(result, receipt(requirement, settled, payer))

    async def _for_nothing(
        self, order: _Order, held: Payment, answer: Answer, result: types.CallToolResult
    ) -> types.CallToolResult | None:
        """What is given without settling, `None` for what is sold.

        Raises:
            Declined: an export has outgrown its payment.
        """
        said, request = answer.object, order.call.request
        if said.get("running") is True:
            return await self._running(order, held, said)
        # Whoever may have paid already gets what there is by now.
        outgrown = said.get("rows", 0) > order.quote.rows > 0 and order.left_over is None
        if isinstance(request, ExportRequest) and outgrown:
            raise Declined("there are more rows by now than were paid for")
        if not await self._is_free(order, said):
            return None
        await _in(order.call, lambda: self._parts.register.answered(held))
        return result

    def _check_time(self, order: _Order, batch: int) -> None:
        parts = self._parts
        if parts.timer() - order.started + parts.settle_seconds > parts.call_seconds:
            way = f"call again with after_batch={batch - 1}, or what this call recorded is never shown"
            raise Unavailable(
                "too_slow",
                "the answer was ready too late to be paid for, and nothing was paid",
                next_step=way if batch else "narrow the search",
            )

    def _closed(self, order: _Order, held: Payment, said: dict[str, Any]) -> None:
        """Note all that was bought; only then may the answer go out."""
        register, request, payer = self._parts.register, order.call.request, order.offer.payer
        try:
            register.answered(held)
        except Unavailable as error:
            raise Unavailable(
                "payment_unavailable",
                "the call was paid for, and the store of payments did not answer",
                next_step="send the same payment with the same call again, within its time",
                detail=error.detail,
            ) from None
        if isinstance(request, UnseenRequest) and "batch" in said and said.get("shown"):
            register.note_batch(payer, said["session"], said["batch"])
        if isinstance(request, ExportRequest) and request.export is not None:
            # The money has moved: the link goes out, and what is not noted only makes it cost again.
            with suppress(NotFound, Unavailable):
                register.paid_off(register.owed(request.export, payer))

    async def _running(self, order: _Order, held: Payment, said: dict[str, Any]) -> types.CallToolResult:
        """Only its id: what an export has counted is paid for with its link."""
        call, register = order.call, self._parts.register
        export_id = said["export"]
        if not (isinstance(call.request, ExportRequest) and call.request.export is not None):
            await _in(call, lambda: register.owe(order.offer.payer, export_id, order.quote.amount))
        await self._dropped(order, held)
        text = f"running, and not paid for yet: ask again with export={export_id}, and pay for the link"
        return call.shape(Answer(text, {"running": True, "export": export_id}))

    async def _is_free(self, order: _Order, said: dict[str, Any]) -> bool:
        """A repeat of what this payer has paid for: a batch, or the link of an export."""
        call, register, payer = order.call, self._parts.register, order.offer.payer
        if isinstance(call.request, ExportRequest) and call.request.export is not None:
            export_id = call.request.export
            owed: Payment = await _in(call, lambda: register.owed(export_id, payer))
            return owed.state == "answered"
        if isinstance(call.request, UnseenRequest) and said.get("repeated"):
            paid: bool = await _in(call, lambda: register.has_batch(payer, said["session"], said["batch"]))
            return paid
        return False

    async def _unpaid(self, order: _Order, held: Payment, settled: Settled, batch: int) -> types.CallToolResult:
        """Why there is no answer, and what to do for one."""
        call, register = order.call, self._parts.register
        if settled.outcome == "unknown" or order.left_over is not None:
            await _in(call, lambda: register.leave_open(held))
            error = "it is not known whether the payment went through: send the same one with the same call again"
        else:
            await _in(call, lambda: register.let_go(held))
            error = f"the payment was not settled: {settled.reason or 'the facilitator is out of reach'}"
            if isinstance(call.request, UnseenRequest) and batch:
                error += f"; with after_batch={batch - 1} the next payment buys the same messages"
        return failed(call.tool, self._asked(order.quote), settled, order.offer.payer, error)

    async def _dropped(self, order: _Order, held: Payment) -> None:
        """After a failure before the settlement: the payer keeps the money, and the payment its use."""
        register = self._parts.register
        with anyio.CancelScope(shield=True):
            if order.left_over is None:
                await _in(order.call, lambda: register.let_go(held))
            else:
                await _in(order.call, lambda: register.leave_open(held))

    async def _declined(self, call: PaidCall, caller: Caller, declined: Declined) -> types.CallToolResult:
        return required(call.tool, self._asked(await self._quote(call, caller)), declined.reason)

    async def _quote(self, call: PaidCall, caller: Caller) -> Quote:
        quote: Quote = await _in(call, lambda: self._parts.quotes.of(call.tool, call.request, caller, call.app))
        return quote

    def _asked(self, quote: Quote) -> PaymentRequirements:
        return self._parts.terms.requirement(quote.amount)


async def _in(call: PaidCall, function: Callable[[], _T]) -> _T:
    """What waits for a disk or a store waits in a thread."""
    result: _T = await call.run(function)
    return result


def _session_of(request: Request) -> str | None:
    return request.search.session if isinstance(request, UnseenRequest) else None
