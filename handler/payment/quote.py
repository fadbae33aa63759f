"""What one call costs, before it is made.

Decides the price of a call, and that an export's follows from its exact count on the snapshot of the moment, in whole
blocks of rows. Must never know whether it will be paid.
"""

from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import BadInput, NotFound
from engine.requests import CountRequest, ExportRequest, Request
from engine.sight import Caller
from handler.app import App
from handler.metering.prices import EXPORT, Prices
from handler.payment.terms import Terms

__all__ = ["Quote", "Quotes"]


@dataclass(frozen=True, slots=True)
class Quote:
    """`amount` in the asset's smallest unit; `rows` of an export it covers, 0 where rows cost nothing."""

    amount: int
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Quotes:
    """`owed` gives the amount for the link of a running export; exports are sold by `block` rows."""

    terms: Terms
    prices: Prices
    block: int
    owed: Callable[[str], int]

    def of(self, tool: str, request: Request, caller: Caller, app: App) -> Quote:
        """What a call costs this caller.

        Raises:
            EngineError: what counting the rows of an export raises.
        """
        if not isinstance(request, ExportRequest):
            return Quote(self.terms.amount(self.prices.price_of(tool)))
        if request.export is not None:
            return self.covered(self.owed(request.export))
        if request.criteria.is_empty or not self.prices.per_row:
            return self._of_rows(1)  # the former an error, which is free, whatever was quoted
        try:
            counted = app.call(CountRequest(criteria=request.criteria), caller).object
        except (BadInput, NotFound):
            # Such an error names values that exist, which is not for whoever has not paid: the export meets it again.
            return self._of_rows(1)
        return self._of_rows(counted["found"]["messages"])

    def covered(self, amount: int) -> Quote:
        """The quote that an amount was paid for: how many rows it covers if it was for an export."""
        row = self.terms.amount(self.prices.per_row)
        rows = (amount - self.terms.amount(self.prices.price_of(EXPORT))) // row if row else 0
        return Quote(amount, max(0, rows))

    def _of_rows(self, rows: int) -> Quote:
        sold = max(1, -(-rows // self.block)) * self.block
        return Quote(self.terms.amount(self.prices.export_price(sold)), sold if self.prices.per_row else 0)
