"""What is kept of a call for whoever pays: its record, the month it adds to, and the credit it is paid from.

Decides what counts as what in a month, and which month a call belongs to: the one it began in, UTC. Money is whole
micro-dollars, times are microseconds since 1970, UTC. Must never know prices or quotas, nor a text: a record holds
numbers, names of tools and codes.
"""

from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

__all__ = [
    "ANSWERED",
    "FREE_OUTCOMES",
    "PROGRESS",
    "REFUNDED",
    "REPEATED",
    "Account",
    "Grant",
    "Hold",
    "Month",
    "Reserved",
    "Settled",
    "Usage",
    "UsageStore",
    "began_in",
    "minute_of",
    "month_end",
    "month_of",
    "record_id",
    "refund_mark",
    "refund_of",
]

ANSWERED = "ok"
"""An answer, which costs its price. Finding nothing is one: absence is information."""
REPEATED = "repeat"
"""A batch shown again that was charged before."""
PROGRESS = "progress"
"""How far an export is."""
REFUNDED = "refund"
"""A charge given back, as a record of its own in the month in which that was done."""
FREE_OUTCOMES = frozenset({REPEATED, PROGRESS})

_MINUTE = 60_000_000
_ID_DIGITS = 14
"""Microseconds in hexadecimal, until the year 4253."""


def month_of(at: int) -> str:
    """The month an instant belongs to, UTC: `2026-12`."""
    return f"{datetime.fromtimestamp(at // 1_000_000, UTC):%Y-%m}"


def month_end(at: int) -> int:
    """The first instant of the month after the one `at` belongs to."""
    first = datetime.fromtimestamp(at // 1_000_000, UTC).replace(day=1, hour=0, minute=0, second=0)
    after = (first + timedelta(days=32)).replace(day=1)
    return int(after.timestamp()) * 1_000_000


def minute_of(at: int) -> int:
    """The minute of the clock an instant belongs to, counted from 1970."""
    return at // _MINUTE


def record_id(at: int, unique: str) -> str:
    """The id of a record: ids sort by time, and tell their month."""
    return f"{at:0{_ID_DIGITS}x}-{unique}"


def began_in(call_id: str) -> int | None:
    """The instant in an id, `None` when it is no id."""
    digits, dash, _ = call_id.partition("-")
    if not dash or len(digits) != _ID_DIGITS or set(digits) - set("0123456789abcdef"):
        return None
    return int(digits, 16)


def refund_mark(call_id: str) -> str:
    """The mark that the refund of a call leaves."""
    return f"refund:{call_id}"


@dataclass(frozen=True, slots=True)
class Usage:
    """The record of one call. `outcome` is one of the four above or an error's code; an error's `charge` is 0.

    `call_id` is unique, made by `record_id` of `began_at`. `prepaid` says that the charge is taken from credit. A
    refund has a negative charge and is prepaid when what it gives back was.
    """

    call_id: str
    caller_id: str
    tool: str
    began_at: int
    outcome: str
    charge: int = 0
    prepaid: bool = False
    milliseconds: int = 0
    rows_scanned: int = 0
    bytes_scanned: int = 0
    bytes_returned: int = 0
    s3_requests: int = 0
    dynamodb_requests: int = 0
    snapshot_at: int | None = None

    @property
    def month(self) -> str:
        """The month it belongs to."""
        return month_of(self.began_at)


def refund_of(charged: Usage, at: int) -> Usage:
    """The record that gives a charge back, in the month of `at`."""
    return Usage(
        call_id=record_id(at, f"refund-{charged.call_id}"),
        caller_id=charged.caller_id,
        tool=charged.tool,
        began_at=at,
        outcome=REFUNDED,
        charge=-charged.charge,
        prepaid=charged.prepaid,
    )


@dataclass(frozen=True, slots=True)
class Month:
    """The sum of a caller's records of one month: `calls` were answered, `free` repeats and the like, `errors` failed.

    `spend` is the sum of charges in micro-dollars.
    """

    caller_id: str
    month: str
    calls: int = 0
    free: int = 0
    errors: int = 0
    refunds: int = 0
    spend: int = 0
    milliseconds: int = 0
    rows_scanned: int = 0
    bytes_scanned: int = 0
    bytes_returned: int = 0
    s3_requests: int = 0
    dynamodb_requests: int = 0

    def plus(self, usage: Usage) -> "Month":
        """The month with one record more."""
        return replace(self, **{name: getattr(self, name) + count for name, count in self.added(usage).items()})

    @staticmethod
    def added(usage: Usage) -> dict[str, int]:
        """By how much a record raises each sum, zeros left out."""
        kind = {ANSWERED: "calls", REFUNDED: "refunds"}.get(
            usage.outcome, "free" if usage.outcome in FREE_OUTCOMES else "errors"
        )
        sums = {each.name for each in fields(Month)} & {each.name for each in fields(Usage)} - {"caller_id", "month"}
        counts = {kind: 1, "spend": usage.charge} | {name: getattr(usage, name) for name in sorted(sums)}
        return {name: count for name, count in counts.items() if count}


@dataclass(frozen=True, slots=True)
class Hold:
    """What a call has reserved before it is made: a place in its minute, and an `amount` of credit, which may be 0.

    From `until` on it is over by itself, and the amount is the caller's again. `litter` is the store's own.
    """

    call_id: str
    caller_id: str
    began_at: int
    until: int
    amount: int = 0
    litter: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reserved:
    """What became of a reservation; with `too_little`, `balance` is what there is."""

    state: Literal["held", "too_many", "too_little"]
    hold: Hold
    balance: int = 0


Settled = Literal["written", "charged_before", "unpaid"]
"""What became of a record. All but `written` leave everything as it was."""


@dataclass(frozen=True, slots=True)
class Account:
    """A caller's credit: what may be spent, and what calls under way have reserved."""

    caller_id: str
    balance: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Grant:
    """Credit given to a caller once for each `reference`."""

    caller_id: str
    reference: str
    amount: int
    at: int


class UsageStore(Protocol):
    """Usage records, months and credit. Each method is one change, whole or not at all, and may be tried again.

    All raise `Unavailable` when the store cannot be reached; what was to be changed may then be changed or not.
    """

    def reserve(self, hold: Hold, *, per_minute: int, now: int) -> Reserved:
        """Take a place in the minute `hold` began in, if `per_minute` (0: no limit) leaves one, and the amount.

        Holds of the caller's that are over by `now` are given back.
        """
        ...

    def raise_to(self, hold: Hold, amount: int, *, until: int, now: int) -> Reserved:
        """Hold `amount` in place of what is held, until then; `too_little` leaves what is held."""
        ...

    def settle(
        self, usage: Usage, *, keep_until: int, hold: Hold | None = None, mark: str = "", mark_until: int = 0
    ) -> Settled:
        """Write a record, add it to its month, take its charge and end its hold.

        A record that is written already is `written`. With a `mark`, which is then kept until `mark_until`, nothing is
        written when another record has left it: `charged_before`. A charge beyond the hold, or after its end, is taken
        from the balance: `unpaid` when that does not hold it.
        """
        ...

    def marked(self, caller_id: str, mark: str) -> str | None:
        """The `call_id` of the record that left a mark, `None` when none did."""
        ...

    def refund(self, caller_id: str, call_id: str, *, at: int, keep_until: int) -> Usage | None:
        """Give a charge back, once: the record of that, also when it was done before; `None` without a charge."""
        ...

    def grant(self, grant: Grant) -> bool:
        """Give credit; false when the reference has been used for another amount."""
        ...

    def account(self, caller_id: str, *, now: int) -> Account:
        """A caller's credit; holds that are over count as balance."""
        ...

    def month(self, caller_id: str, month: str) -> Month:
        """The sums of one caller; zeros when there is no record."""
        ...

    def months(self, month: str) -> list[Month]:
        """The sums of every caller with a record, by caller."""
        ...

    def records(self, caller_id: str, month: str) -> list[Usage]:
        """A caller's records of a month in the order of their ids, refunds included, as long as they are kept."""
        ...
