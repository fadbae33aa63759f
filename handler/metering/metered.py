"""The application with every call paid for: admitted before work is done, recorded and charged after.

Decides what a call is charged, and what becomes of it while the store of usage cannot be reached. A wrapper with the
same port: it must never know what a tool does, and keeps no text, only what the answer says of itself and the tally.

    quota and credit -> reserve -> the call -> settle: record, month and charge in one change -> the answer

An answer leaves after its record is written, so a call that dies in between was neither charged nor answered.
"""

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NoReturn

from engine.answer import Answer
from engine.deadline import check_deadline
from engine.errors import EngineError, Refused, Unavailable
from engine.limits import Limits
from engine.ports import Progress
from engine.requests import ExportRequest, Request, SearchRequest, UnseenRequest
from engine.sight import Caller
from engine.tally import Tally, add, current
from engine.usage import ANSWERED, PROGRESS, REPEATED, Hold, Month, Usage, UsageStore, month_of, record_id
from handler.app import App
from handler.auth.policies import is_payer
from handler.counted import tool_of
from handler.metering.prices import COUNT, EXPORT, FREE, Prices, dollars
from handler.metering.quotas import UNLIMITED, Quota, Quotas

__all__ = ["MeteredApp", "Rules", "admit_rows"]

logger = logging.getLogger(__name__)

_SECOND = 1_000_000
_FAILED_EXPORT = "export_failed"
_OUT_OF_REACH = "store_unreachable"


@dataclass(frozen=True, slots=True)
class Rules:
    """By what calls are charged. `serve_when_down` answers unmetered while the store cannot be reached.

    Seconds: a record is kept for `keep_seconds`, a charged batch is known for `session_seconds`, what a killed call
    has reserved is free again after `hold_seconds`, of an export after `export_seconds`. Callers in `exempt` are the
    operator's own: recorded, and neither charged nor limited. Callers who pay for each call are limited, and charged
    elsewhere.
    """

    prices: Prices
    quotas: Quotas
    serve_when_down: bool = False
    keep_seconds: int = 400 * 86_400
    session_seconds: int = 30 * 86_400
    hold_seconds: int = 120
    export_seconds: int = 1_800
    exempt: frozenset[str] = frozenset({"canary"})


@dataclass(slots=True)
class _Call:
    """One call under way. `price` is the most that its answer costs; `lost`: the store failed it, which is served."""

    usage: Usage
    quota: Quota
    prices: Prices
    price: int = 0
    hold: Hold | None = None
    month: Month | None = None
    repeats: bool = False
    lost: bool = False
    admit: Callable[[int], None] | None = None


_current: ContextVar[_Call | None] = ContextVar("metered call", default=None)


def admit_rows(rows: int) -> None:
    """Told the exact count of an export before anything of it is written: reserves what so many rows cost.

    Raises:
        Refused: `quota_exceeded`, `credit_exhausted`.
        Unavailable: `metering_down`, `too_slow`.
    """
    # A call that was left behind reserves nothing more: its end was recorded.
    check_deadline()
    call = _current.get()
    if call is not None and call.admit is not None:
        call.admit(rows)


class MeteredApp:
    """An `App` around another one. `clock` gives microseconds since 1970, UTC; `timer` seconds."""

    def __init__(
        self,
        inner: App,
        store: UsageStore,
        rules: Rules,
        clock: Callable[[], int],
        *,
        collect: Callable[[], None] = lambda: None,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._inner = inner
        self._store = store
        self._rules = rules
        self._clock = clock
        self._collect = collect
        self._timer = timer

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self._inner.limits

    def call(self, request: Request, caller: Caller, *, brute: bool = False) -> Answer:
        """Answer one tool call, if it is paid for.

        Raises:
            Refused: `quota_exceeded`, `credit_exhausted`: nothing was done.
            Unavailable: `metering_down`, by the setting that refuses what cannot be metered.
            EngineError: what the call itself raises, which is free.
        """
        started = self._timer()
        call = self._begun(request, caller)
        self._admit(call, request)
        outcome, answer = "internal", None
        with _metered(call):
            try:
                answer = self._inner.call(request, caller, brute=brute)
            except EngineError as error:
                outcome = error.code
                raise
            finally:
                self._measured(call, answer, self._timer() - started)
                if answer is None:
                    self._failed(call, request, outcome)
        self._answered(call, request, answer)
        return answer

    def instructions(self, caller: Caller) -> str:
        """As the application inside; likewise all below: only tool calls are metered."""
        return self._inner.instructions(caller)

    def corpus(self, caller: Caller) -> dict[str, Any]:
        """The corpus in numbers."""
        return self._inner.corpus(caller)

    def finish_export(self, export_id: str) -> dict[str, Any]:
        """Write a running export whole. It was charged when it began."""
        return self._inner.finish_export(export_id)

    def refresh(self, progress: Progress | None = None, *, force: bool = False) -> dict[str, Any]:
        """Read the sources and publish a snapshot."""
        return self._inner.refresh(progress, force=force)

    def verify(self, progress: Progress | None = None) -> dict[str, Any]:
        """Rehash every file of the current snapshot."""
        return self._inner.verify(progress)

    def _begun(self, request: Request, caller: Caller) -> _Call:
        began_at, tool = self._clock(), tool_of(request)
        exempt = caller.caller_id in self._rules.exempt
        quota = UNLIMITED if exempt else self._rules.quotas.of(caller.caller_id)
        prices = FREE if exempt or is_payer(caller.caller_id) else self._rules.prices
        usage = Usage(record_id(began_at, secrets.token_hex(8)), caller.caller_id, tool, began_at, ANSWERED)
        asks_progress = _asks_progress(request)
        call = _Call(usage, quota, prices, 0 if asks_progress else prices.price_of(tool))
        if isinstance(request, ExportRequest) and not asks_progress and prices is not FREE:
            call.admit = lambda rows: self._admit_rows(call, rows)
        return call

    def _admit(self, call: _Call, request: Request) -> None:
        """Refuse the call, or reserve what it needs, before any work is done."""
        usage, quota = call.usage, call.quota
        with self._reaching(call):
            mark = _mark_repeated(request)
            if mark and self._store.marked(usage.caller_id, mark) is not None:
                # It was paid for, and its answer was lost: it returns whatever is used up since.
                call.price, call.repeats = 0, True
            elif quota.is_monthly and not _asks_progress(request):
                # What was charged when it began is fetched whatever is used up since, likewise.
                call.month = self._store.month(usage.caller_id, month_of(usage.began_at))
                quota.check_month(call.month, call.price, usage.began_at)
            amount = call.price if quota.prepaid else 0
            if not quota.calls_per_minute and not amount:
                return
            until = usage.began_at + self._rules.hold_seconds * _SECOND
            hold = Hold(usage.call_id, usage.caller_id, usage.began_at, until, amount)
            reserved = self._store.reserve(hold, per_minute=quota.calls_per_minute, now=usage.began_at)
            if reserved.state == "too_many":
                raise quota.full_minute(hold)
            if reserved.state == "too_little":
                raise _too_little(usage.tool, amount, reserved.balance)
            call.hold = reserved.hold

    def _admit_rows(self, call: _Call, rows: int) -> None:
        """The price of an export is known: it is what is held and charged from here on."""
        usage, price = call.usage, call.prices.export_price(rows)
        if call.month is not None:
            call.quota.check_month(call.month, price, usage.began_at)
        if call.quota.prepaid and price and not call.lost:
            now = self._clock()
            until = now + self._rules.export_seconds * _SECOND
            held = call.hold or Hold(usage.call_id, usage.caller_id, usage.began_at, until)
            with self._reaching(call):
                reserved = self._store.raise_to(held, price, until=until, now=now)
                call.hold = reserved.hold
                if reserved.state != "held":
                    raise _too_little(EXPORT, price, reserved.balance)
        call.price = price

    def _measured(self, call: _Call, answer: Answer | None, seconds: float) -> None:
        tally = current() or Tally()
        if tally.counts["statements"]:
            self._collect()
        counts = tally.counts
        call.usage = replace(
            call.usage,
            milliseconds=round(seconds * 1_000),
            rows_scanned=counts["rows_scanned"],
            bytes_scanned=counts["bytes_scanned"],
            bytes_returned=0 if answer is None else len(answer.text.encode("utf-8", "surrogatepass")),
            s3_requests=counts["s3_requests"],
            dynamodb_requests=counts["dynamodb_requests"],
            snapshot_at=tally.snapshot_at,
        )

    def _failed(self, call: _Call, request: Request, outcome: str) -> None:
        """Record an error, which is free. What the caller is told is the error, whatever becomes of the record."""
        if call.lost:
            return
        try:
            self._settle(call, outcome)
            if outcome == _FAILED_EXPORT and isinstance(request, ExportRequest) and request.export is not None:
                self._give_back(call.usage, request.export)
        except Unavailable as error:
            logger.warning("an error was not recorded: %s", error.detail or error.code)

    def _answered(self, call: _Call, request: Request, answer: Answer) -> None:
        """Record an answer and charge it; raises where it must not be given."""
        if call.lost:
            return
        usage, told = call.usage, answer.object
        with self._reaching(call, lambda: _after_batch(request, told)):
            if _asks_progress(request):
                self._settle(call, PROGRESS)
                return
            if call.repeats and told.get("repeated"):
                self._settle(call, REPEATED)
                return
            price = _due(call, request, told)
            prepaid = call.quota.prepaid and price > 0
            settled = self._settle(call, ANSWERED, charge=price, prepaid=prepaid, mark=_mark_made(request, told))
            if settled == "charged_before":
                self._settle(call, REPEATED)
            elif settled == "unpaid":
                self._settle(call, "credit_exhausted")
                balance = self._store.account(usage.caller_id, now=self._clock()).balance
                raise _too_little(usage.tool, price, balance, then=_after_batch(request, told))

    def _settle(self, call: _Call, outcome: str, *, charge: int = 0, prepaid: bool = False, mark: str = "") -> str:
        usage = replace(call.usage, outcome=outcome, charge=charge, prepaid=prepaid)
        return self._store.settle(
            usage,
            keep_until=usage.began_at + self._rules.keep_seconds * _SECOND,
            hold=call.hold,
            mark=mark,
            mark_until=usage.began_at + self._rules.session_seconds * _SECOND,
        )

    def _give_back(self, usage: Usage, export_id: str) -> None:
        """Refund an export that was charged when it began and came to nothing."""
        charged = self._store.marked(usage.caller_id, _export_mark(export_id))
        if charged is not None:
            now = self._clock()
            self._store.refund(usage.caller_id, charged, at=now, keep_until=now + self._rules.keep_seconds * _SECOND)

    @contextmanager
    def _reaching(self, call: _Call, way: Callable[[], str] = lambda: "call again") -> Iterator[None]:
        """Around what needs the store of usage: what becomes of the call when it cannot be reached."""
        try:
            yield
        except Unavailable as error:
            usage = call.usage
            if error.code != _OUT_OF_REACH:
                raise
            if not self._rules.serve_when_down:
                _down(error, way())
            call.lost = True
            add("unmetered")
            logger.warning(
                "unmetered: a call of %s by %s at %d, priced %d: %s",
                usage.tool,
                usage.caller_id,
                usage.began_at,
                call.price,
                error.detail or error.code,
            )


def _down(error: Unavailable, way: str) -> NoReturn:
    raise Unavailable(
        "metering_down", "the call could not be metered, so it is not answered", next_step=way, detail=error.detail
    ) from error


@contextmanager
def _metered(call: _Call) -> Iterator[None]:
    token = _current.set(call)
    try:
        yield
    finally:
        _current.reset(token)


def _too_little(tool: str, price: int, balance: int, then: str = "") -> Refused:
    return Refused(
        "credit_exhausted",
        f"this call of {tool} costs {dollars(price)}, and the credit is {dollars(balance)}",
        next_step="ask whoever runs this server for credit" + (f", then {then}" if then else ""),
    )


def _asks_progress(request: Request) -> bool:
    return isinstance(request, ExportRequest) and request.export is not None


def _due(call: _Call, request: Request, told: dict[str, Any]) -> int:
    """What an answer costs: its price, and where it shows nothing no more than a count, which says as much."""
    price = call.price if not call.repeats else call.prices.price_of(call.usage.tool)
    if isinstance(request, ExportRequest):
        empty = told.get("rows") == 0 and not told.get("running")
    else:
        empty = isinstance(request, SearchRequest | UnseenRequest) and told.get("shown") == 0
    return min(price, call.prices.price_of(COUNT)) if empty else price


def _batch_made(told: dict[str, Any]) -> int:
    """The batch that a page is, 0 for an empty one: that names the newest of its session, which others are."""
    batch: int = told.get("batch", 0)
    return batch if told.get("shown") else 0


def _after_batch(request: Request, told: dict[str, Any]) -> str:
    """The way to an answer that was made and not given: its batch has been claimed."""
    batch = _batch_made(told)
    if isinstance(request, UnseenRequest) and request.search.session is not None and batch:
        return f"call again with after_batch={batch - 1}, or what this call recorded is never shown"
    return "call again"


def _mark_repeated(request: Request) -> str:
    """The mark of the batch that would be shown again: each is followed by the next number."""
    if isinstance(request, UnseenRequest) and request.after_batch is not None and request.search.session is not None:
        return _batch_mark(request.search.session, request.after_batch + 1)
    return ""


def _mark_made(request: Request, told: dict[str, Any]) -> str:
    """The mark of what may be asked for again or given back: a batch, or an export that is still to be written."""
    if isinstance(request, UnseenRequest) and _batch_made(told):
        return _batch_mark(told["session"], told["batch"])
    if isinstance(request, ExportRequest) and told.get("running"):
        return _export_mark(told["export"])
    return ""


def _batch_mark(session: str, batch: int) -> str:
    # A handle and an export's id are secrets: a digest of them says as much here.
    return f"batch:{sha256(session.encode('utf-8', 'surrogatepass')).hexdigest()}:{batch}"


def _export_mark(export_id: str) -> str:
    return f"export:{sha256(export_id.encode('utf-8', 'surrogatepass')).hexdigest()}"
