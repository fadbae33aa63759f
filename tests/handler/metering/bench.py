"""What the tests of metering share: a metered application over a small one, and whose clock is turned by hand."""

from dataclasses import dataclass, field
from typing import Any

from engine.answer import Answer
from engine.requests import (
    CountRequest,
    Criteria,
    ExportRequest,
    Request,
    SearchRequest,
    ThreadRequest,
    UnseenRequest,
)
from engine.sight import Caller
from engine.usage import Grant, UsageStore
from handler.metering.metered import MeteredApp, Rules, admit_rows
from handler.metering.prices import Prices
from handler.metering.quotas import Quotas
from handler.settings_money import QuotaSettings
from tests.handler.small_app import SmallApp

__all__ = ["ADA", "COUNT", "NOON", "PRICES", "SECOND", "THREAD", "Clock", "credit", "export", "metered", "unseen"]

NOON = 1_480_507_200_000_000
"""2016-11-30 12:00 UTC in microseconds."""
SECOND = 1_000_000
ADA = Caller("key:ada")
PRICES = Prices(
    {"count_messages": 10, "search_messages": 20, "unseen_messages": 30, "open_thread": 40, "export_messages": 50}, 7
)
COUNT = CountRequest(Criteria(query="docker"))
THREAD = ThreadRequest(("C1:1.1",))


@dataclass
class Clock:
    """An instant that moves when a test says so."""

    now: int = NOON

    def __call__(self) -> int:
        """The instant."""
        return self.now


@dataclass
class Paged(SmallApp):
    """A small app whose unseen pages are batches of sessions, and whose exports count `rows`."""

    rows: int = 0
    batches: dict[str, int] = field(default_factory=dict)

    def call(self, request: Request, caller: Caller, *, brute: bool = False) -> Answer:
        """An answer with its batch."""
        if isinstance(request, ExportRequest) and request.export is None and self.rows:
            admit_rows(self.rows)
        answer = super().call(request, caller, brute=brute)
        if not isinstance(request, UnseenRequest) or request.search.session is None:
            return answer
        session, newest = request.search.session, self.batches.get(request.search.session, 0)
        if answer.object.get("shown") == 0:
            # It claims nothing, and names the newest batch.
            return Answer(answer.text, {**answer.object, "session": session} | ({"batch": newest} if newest else {}))
        repeated = request.after_batch is not None and request.after_batch < newest
        batch = (request.after_batch or 0) + 1 if repeated else newest + 1
        self.batches[session] = max(newest, batch)
        told: dict[str, Any] = {**answer.object, "session": session, "batch": batch}
        return Answer(answer.text, told | ({"repeated": True} if repeated else {}))


def unseen(session: str, after_batch: int | None = None) -> UnseenRequest:
    """A request for the next page of a session, or for one again."""
    return UnseenRequest(SearchRequest(Criteria(query="docker"), session=session), after_batch)


def export(export_id: str | None = None) -> ExportRequest:
    """A request for an export, or for how far one is."""
    return ExportRequest(export=export_id) if export_id else ExportRequest(Criteria(query="docker"))


def metered(
    store: UsageStore,
    quota: QuotaSettings | None = None,
    *,
    inner: SmallApp | None = None,
    clock: Clock | None = None,
    serve: bool = False,
    prices: Prices = PRICES,
) -> MeteredApp:
    """A metered application whose callers all have this quota."""
    rules = Rules(prices, Quotas((quota,) if quota else ()), serve_when_down=serve)
    return MeteredApp(inner or Paged(), store, rules, clock or Clock(), timer=lambda: 0.0)


def credit(store: UsageStore, amount: int, caller: Caller = ADA) -> None:
    """Give credit."""
    assert store.grant(Grant(caller.caller_id, f"grant-{amount}", amount, NOON))
