"""What is counted of a caller's calls, what they cost, and how far a caller may go.

Decides what of these may be set and to what. Must never know where usage is kept. Money is whole micro-dollars: a
millionth of a US dollar, so that sums are exact.
"""

from typing import Any, Literal

from handler.settings_base import Names, Section, setting

__all__ = ["MeteringSettings", "PriceSettings", "QuotaSettings"]

_MOST = 1_000_000_000
"""A thousand dollars for one call is a slip of the pen."""


class MeteringSettings(Section):
    """Whether calls are counted for their callers. See docs/metering.md."""

    mode: Literal["auto", "on", "off"] = setting(
        "auto",
        "Whether each tool call writes a usage record.",
        "auto: where `auth.modes` wants proof of who asks; on a laptop that asks for none there is nobody to count.",
    )
    when_down: Literal["refuse", "serve"] = setting(
        "refuse",
        "What becomes of a call while the store of usage cannot be reached.",
        "refuse: nothing is given away; serve answers uncounted, and says so in the log.",
    )
    keep_days: int = setting(
        400, "How long the record of one call is kept.", "A year's bills can be looked up.", ge=35, le=4_000
    )
    hold_seconds: int = setting(
        120,
        "Credit that a call has reserved is free again after so long if the call was killed.",
        "Longer than any call but an export's lasts.",
        ge=60,
        le=86_400,
    )


def _price(help_text: str) -> Any:
    return setting(0, help_text, "Free until a price is set; at most $1,000.", ge=0, le=_MOST)


class PriceSettings(Section):
    """What a call costs, in micro-dollars (1,000,000 are one US dollar), where calls are metered."""

    count_messages: int = _price("A call of this tool.")
    search_messages: int = _price("A call of this tool.")
    unseen_messages: int = _price("A call of this tool.")
    open_thread: int = _price("A call of this tool.")
    export_messages: int = _price("A call that starts an export. Asking how far it is costs nothing.")
    export_row: int = _price("Each row of an export, beside the call.")


def _quota(help_text: str, reason: str) -> Any:
    return setting(0, help_text, reason, ge=0)


class QuotaSettings(Section):
    """One `[[quotas]]` block: whom it is for, and how far they may go. The first that fits a caller counts; 0 is no
    limit.
    """

    callers: Names = setting(("*",), "Whom it is for, as in a policy; `*` and `?` stand for any text.")
    prepaid: bool = setting(
        False, "Calls are paid from credit that was granted before, and refused without.", "Off: the month is billed."
    )
    calls_per_minute: int = _quota("Calls in one minute of the clock.", "Every call counts, whatever became of it.")
    calls_per_month: int = _quota("Answers in one month, UTC.", "Errors and free repeats do not count.")
    bytes_per_month: int = _quota(
        "Bytes of answers in one month, UTC.", "What an answer holds is known after it is made: the last may go over."
    )
    spend_per_month: int = _quota("Micro-dollars spent in one month, UTC.", "A call that would go over is refused.")
