"""What a call costs, and how that is said to whoever is about to make one.

Decides prices from settings, their words in the instructions and their figures in the tools' `_meta`. Money is whole
micro-dollars. Must never know who pays, nor how.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from handler.settings import Settings
from handler.settings_money import PriceSettings
from handler.tools.table import TOOLS

__all__ = ["COUNT", "EXPORT", "FREE", "PRICE_META", "Prices", "dollars", "prices_of", "shown_prices"]

COUNT = "count_messages"
"""The tool whose price is the most that an answer without a message costs."""

EXPORT = "export_messages"
"""The tool that costs by row beside its call."""

PRICE_META = "hayfork/price"
"""Where in a tool's `_meta` its price stands."""

_MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Micro-dollars for a call of each tool, and for each row of an export. What is not named is free."""

    calls: Mapping[str, int] = field(default_factory=dict)
    per_row: int = 0

    def price_of(self, tool: str) -> int:
        """What one call of a tool costs, in micro-dollars; of an export, beside its rows."""
        return self.calls.get(tool, 0)

    def export_price(self, rows: int) -> int:
        """What an export of so many rows costs whole, in micro-dollars."""
        return self.price_of(EXPORT) + rows * self.per_row

    @property
    def is_free(self) -> bool:
        """True when nothing costs anything."""
        return not self.per_row and not any(self.calls.values())

    def meta(self, tool: str) -> dict[str, Any]:
        """A tool's price for programs: `{"hayfork/price": {"usd_micros", "usd_micros_per_row"}}`."""
        told = {"usd_micros": self.price_of(tool)}
        if tool == EXPORT:
            told["usd_micros_per_row"] = self.per_row
        return {PRICE_META: told}

    def line(self) -> str:
        """The same for a model, as one line of the instructions; empty when nothing costs anything."""
        if self.is_free:
            return ""
        parts = [f"{tool} {dollars(self.price_of(tool))}" for tool in TOOLS if self.price_of(tool)]
        if self.per_row:
            parts.append(f"each exported row {dollars(self.per_row)}")
        return f"- A call costs: {', '.join(parts)}. Errors are free, and so is repeating a batch that was paid for."


FREE = Prices()
"""Where nothing costs anything."""


def prices_of(settings: PriceSettings) -> Prices:
    """The price table of a deployment."""
    return Prices({tool: getattr(settings, tool) for tool in TOOLS}, settings.export_row)


def shown_prices(settings: Settings) -> Prices:
    """The prices that callers are told: `FREE` where calls are neither metered nor sold."""
    return prices_of(settings.prices) if settings.metered or settings.x402.enabled else FREE


def dollars(micros: int) -> str:
    """Micro-dollars, whole, with at least two decimals: `$0.0025`, `-$1.50`."""
    whole, rest = divmod(abs(micros), _MICRO)
    decimals = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if micros < 0 else ''}${whole:,}.{decimals}"
