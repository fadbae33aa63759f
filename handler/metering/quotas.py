"""How far a caller may go, and what they are told where that ends.

Decides which quota is a caller's and when it is used up. Limits of 0 are none. Must never know where usage is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from engine.errors import Refused
from engine.times import iso
from engine.usage import Hold, Month, minute_of, month_end
from handler.metering.prices import dollars
from handler.settings_money import QuotaSettings

__all__ = ["UNLIMITED", "Quota", "Quotas"]

_MINUTE = 60_000_000


@dataclass(frozen=True, slots=True)
class Quota:
    """How far one caller may go: calls in a minute; calls, bytes and micro-dollars in a month; on credit or not."""

    prepaid: bool = False
    calls_per_minute: int = 0
    calls_per_month: int = 0
    bytes_per_month: int = 0
    spend_per_month: int = 0

    @property
    def is_monthly(self) -> bool:
        """Whether the caller's month must be looked at before a call."""
        return bool(self.calls_per_month or self.bytes_per_month or self.spend_per_month)

    def check_month(self, month: Month, price: int, at: int) -> None:
        """Refuse what would go over: one call more, of `price` micro-dollars, in the month of `at`.

        Raises:
            Refused: `quota_exceeded`.
        """
        if self.calls_per_month and month.calls >= self.calls_per_month:
            raise _exceeded(f"{self.calls_per_month:,} calls a month are used up", month_end(at))
        if self.bytes_per_month and month.bytes_returned >= self.bytes_per_month:
            raise _exceeded(f"{self.bytes_per_month:,} bytes a month are used up", month_end(at))
        if self.spend_per_month and month.spend + price > self.spend_per_month:
            spent = f"{dollars(month.spend)} of {dollars(self.spend_per_month)} a month are spent"
            raise _exceeded(f"{spent}, and this costs {dollars(price)}", month_end(at))

    def full_minute(self, hold: Hold) -> Refused:
        """The refusal of a call in a minute that is used up."""
        resets_at = (minute_of(hold.began_at) + 1) * _MINUTE
        return _exceeded(f"{self.calls_per_minute:,} calls a minute are used up", resets_at)


UNLIMITED = Quota()
"""Of whom no quota is for."""


class Quotas:
    """The quotas of a deployment; the first that fits a caller counts."""

    def __init__(self, settings: Sequence[QuotaSettings] = ()) -> None:
        self._quotas = tuple(
            (
                each.callers,
                Quota(
                    each.prepaid,
                    each.calls_per_minute,
                    each.calls_per_month,
                    each.bytes_per_month,
                    each.spend_per_month,
                ),
            )
            for each in settings
        )

    def of(self, caller_id: str) -> Quota:
        """How far this caller may go."""
        return next(
            (quota for patterns, quota in self._quotas if any(fnmatchcase(caller_id, each) for each in patterns)),
            UNLIMITED,
        )


def _exceeded(what: str, resets_at: int) -> Refused:
    return Refused("quota_exceeded", what, next_step=f"this resets at {iso(resets_at)}")
