"""How usage, months and credit read as items of a DynamoDB table; the table stands in `infra.dynamodb_usage`.

Decides keys, names and types of what is written, and reads it back. Must never know a request.
"""

from dataclasses import fields
from hashlib import sha256
from typing import Any

from engine.usage import Hold, Month, Usage, minute_of, month_of

__all__ = [
    "AT_ONCE",
    "HOLD",
    "PARTITION_KEY",
    "SORT_KEY",
    "TTL_ATTRIBUTE",
    "Item",
    "caller_key",
    "held_amount",
    "hold_value",
    "holds",
    "mark_item",
    "minute_name",
    "month_sums",
    "number",
    "owner",
    "past_minutes",
    "place",
    "record_item",
    "record_place",
    "usage_of",
]

PARTITION_KEY = "owner"
SORT_KEY = "item"
TTL_ATTRIBUTE = "expires_at"

HOLD, MINUTE = "hold:", "minute:"
AT_ONCE = 40
"""Holds or minutes ended by one update: an expression may be 4 KB long."""
_LONGEST_ID = 900
"""Bytes of a caller's id in a key, which holds 1,024 at most."""

Item = dict[str, Any]


def owner(caller_id: str) -> str:
    """The partition of a caller."""
    return f"c:{caller_key(caller_id)}"


def caller_key(caller_id: str) -> str:
    """A caller's id as part of a key, which holds 1,024 bytes at most."""
    raw = caller_id.encode("utf-8", "surrogatepass")
    return caller_id if len(raw) <= _LONGEST_ID else f"sha256:{sha256(raw).hexdigest()}"


def place(owner: str, item: str) -> Item:
    """The key of an item."""
    return {PARTITION_KEY: {"S": owner}, SORT_KEY: {"S": item}}


def record_place(call_id: str, began_at: int) -> str:
    """Where a record stands beside the others of its month."""
    return f"call:{month_of(began_at)}:{call_id}"


def minute_name(hold: Hold) -> str:
    """The count of the minute a call began in."""
    return f"{MINUTE}{minute_of(hold.began_at)}"


def hold_value(amount: int, until: int) -> Item:
    """A hold as an attribute."""
    return {"M": {"amount": {"N": str(amount)}, "until": {"N": str(until)}}}


def holds(item: Item) -> dict[str, tuple[int, int]]:
    """The holds of an account by call: what is held, and until when."""
    return {
        name.removeprefix(HOLD): (number(value["M"], "amount"), number(value["M"], "until"))
        for name, value in item.items()
        if name.startswith(HOLD)
    }


def held_amount(item: Item, call_id: str) -> int | None:
    """What a call holds in an account, `None` when nothing of it is there."""
    found = holds(item).get(call_id)
    return found[0] if found is not None else None


def past_minutes(item: Item, hold: Hold) -> tuple[str, ...]:
    """Counts of minutes that are past, the last one excepted: clocks differ."""
    last = minute_of(hold.began_at) - 1
    minutes = [name for name in item if name.startswith(MINUTE) and int(name.removeprefix(MINUTE)) < last]
    return tuple(minutes[:AT_ONCE])


def number(item: Item, name: str) -> int:
    """A number of an item, 0 when it is not there."""
    return int(item[name]["N"]) if name in item else 0


def _seconds(at: int) -> Item:
    return {"N": str(-(-at // 1_000_000))}


def mark_item(caller_id: str, mark: str, call_id: str, until: int) -> Item:
    """A mark."""
    return {**place(owner(caller_id), f"mark:{mark}"), TTL_ATTRIBUTE: _seconds(until), "call_id": {"S": call_id}}


def record_item(usage: Usage, keep_until: int) -> Item:
    """A record."""
    item = {
        **place(owner(usage.caller_id), record_place(usage.call_id, usage.began_at)),
        TTL_ATTRIBUTE: _seconds(keep_until),
    }
    for each in fields(Usage):
        value: object = getattr(usage, each.name)
        if isinstance(value, bool):
            item[each.name] = {"BOOL": value}
        elif value is not None:
            item[each.name] = {"N": str(value)} if isinstance(value, int) else {"S": value}
    return item


def usage_of(item: Item) -> Usage:
    """A record, read back."""
    values: dict[str, Any] = {}
    for each in fields(Usage):
        if each.name in item:
            ((kind, value),) = item[each.name].items()
            values[each.name] = int(value) if kind == "N" else value
    return Usage(**values)


def month_sums(caller_id: str, month: str, item: Item) -> Month:
    """The sums of a month, read back."""
    sums = {each.name: number(item, each.name) for each in fields(Month)[2:]}
    return Month(caller_id, month, **sums)
