"""A desk made of settings.

Decides which settings contradict each other, or cannot be sold by. Must never know which store keeps payments.
"""

from collections.abc import Callable

from engine.errors import BadInput
from engine.payments import PaymentStore
from handler.auth.jwks import check_address
from handler.auth.policies import Policies
from handler.metering.prices import Prices, prices_of
from handler.payment.desk import Desk, DeskParts
from handler.payment.facilitator import Facilitator, Waits
from handler.payment.quote import Quotes
from handler.payment.register import Register
from handler.payment.terms import Terms
from handler.settings import Settings
from handler.tools.table import TOOLS

__all__ = ["desk_of"]

_NEEDED = ("network", "asset", "pay_to", "facilitator")


def desk_of(settings: Settings, policies: Policies, store: PaymentStore, clock: Callable[[], int]) -> Desk:
    """The desk over `store`. `clock` gives microseconds since 1970, UTC.

    Raises:
        BadInput: `bad_setting`.
    """
    own = settings.x402
    for name in _NEEDED:
        if not getattr(own, name):
            raise BadInput("bad_setting", f"x402.{name} is empty", next_step="set it; see docs/payment.md")
    check_address("x402.facilitator", own.facilitator)
    prices = prices_of(settings.prices)
    _check_prices(prices, policies)
    if own.verify_seconds + own.settle_seconds >= own.call_seconds:
        raise BadInput(
            "bad_setting",
            "x402.verify_seconds and settle_seconds leave nothing of call_seconds to search in",
            next_step="lower them",
        )
    terms = Terms(
        network=own.network,
        asset=own.asset,
        name=own.asset_name,
        version=own.asset_version,
        decimals=own.asset_decimals,
        pay_to=own.pay_to,
        timeout_seconds=own.timeout_seconds,
    )
    register = Register(store, clock, own.settle_seconds)
    waits = Waits(own.verify_seconds, own.settle_seconds)
    return Desk(
        DeskParts(
            terms=terms,
            quotes=Quotes(terms, prices, own.export_rows, lambda export_id: register.owed(export_id, None).amount),
            register=register,
            facilitator=Facilitator(own.facilitator, own.network, waits, authorization=own.facilitator_authorization),
            policies=policies,
            clock=clock,
            settle_seconds=own.settle_seconds,
            call_seconds=own.call_seconds,
        )
    )


def _check_prices(prices: Prices, policies: Policies) -> None:
    """A call that costs nothing has no payer, and its session no owner."""
    visitor = policies.visitor()
    for tool in TOOLS:
        if visitor is not None and visitor.has(tool) and not prices.price_of(tool):
            raise BadInput(
                "bad_setting",
                f"prices.{tool} is 0, and callers who pay have the tool",
                next_step="set a price, or leave the tool out of their policy",
            )
