"""Usage as it is told: a caller's month with what is left of quota and credit, and one row for each month or call.

Decides names and order of what a caller or an operator reads; money stays in micro-dollars, names say so. Must never
know who asks.
"""

import re
from dataclasses import asdict
from typing import Any

from engine.errors import BadInput, quoted
from engine.times import iso
from engine.usage import Month, Usage, UsageStore, month_end, month_of
from handler.metering.quotas import Quotas

__all__ = ["month_row", "named_month", "record_row", "usage_report"]

_MONTH = re.compile(r"[12]\d{3}-(0[1-9]|1[0-2])", re.ASCII)


def named_month(given: str, now: int) -> str:
    """A month as it was asked for; the current one where none was.

    Raises:
        BadInput: `bad_time`.
    """
    if not given:
        return month_of(now)
    if not _MONTH.fullmatch(given):
        raise BadInput("bad_time", f"month {quoted(given)}", next_step="give a month, for example 2026-12")
    return given


def month_row(month: Month) -> dict[str, Any]:
    """A month's sums by name."""
    row = asdict(month)
    return {("spend_micros" if name == "spend" else name): value for name, value in row.items()}


def record_row(usage: Usage) -> dict[str, Any]:
    """A record by name, its instants written out."""
    row: dict[str, Any] = {}
    for name, value in asdict(usage).items():
        if name in {"began_at", "snapshot_at"}:
            row[name] = "" if value is None else iso(value)
        else:
            row["charge_micros" if name == "charge" else name] = value
    return row


def usage_report(store: UsageStore, quotas: Quotas, caller_id: str, month: str, now: int) -> dict[str, Any]:
    """What a caller has used in a month, their credit, and of the current month what each quota leaves.

    Raises:
        Unavailable: the store cannot be reached.
    """
    summed, quota = store.month(caller_id, month), quotas.of(caller_id)
    account = store.account(caller_id, now=now)
    told = month_row(summed)
    if quota.prepaid or account.balance or account.held:
        told["credit"] = {"balance_micros": account.balance, "held_micros": account.held}
    limits: dict[str, Any] = {}
    if quota.calls_per_minute:
        limits["calls_per_minute"] = {"limit": quota.calls_per_minute}
    used = {
        "calls_per_month": (quota.calls_per_month, summed.calls),
        "bytes_per_month": (quota.bytes_per_month, summed.bytes_returned),
        "spend_per_month": (quota.spend_per_month, summed.spend),
    }
    if month == month_of(now):
        resets = iso(month_end(now))
        limits |= {
            name: {"limit": most, "used": so_far, "resets": resets} for name, (most, so_far) in used.items() if most
        }
    return {**told, **({"quotas": limits} if limits else {})}
