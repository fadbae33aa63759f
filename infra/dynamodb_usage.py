"""Usage, months and credit in one DynamoDB table.

    owner         item              what it is
    c:CALLER      account           credit: `balance`, `hold:ID` {amount, until} of calls under way, `minute:N` calls
    c:CALLER      call:MONTH:ID     one record, field by field
    c:CALLER      mark:MARK         which record left a mark: `call_id`
    c:CALLER      grant:REFERENCE   credit given: `amount`, `at`
    m:MONTH       CALLER            the sums of a caller's month

    expires_at    N  seconds since 1970, the table's time to live; on records and marks

Decides that a reservation is one conditional update of the account, and a record with all it changes one transaction
on the condition that there is no such record: what is tried again counts once. When a hold is over is judged here, on
reading, never by the time to live. Must never know a price.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from engine.usage import (
    Account,
    Grant,
    Hold,
    Month,
    Reserved,
    Settled,
    Usage,
    began_in,
    refund_mark,
    refund_of,
)
from infra.aws import Aws, AwsSettings, error_code, unreachable
from infra.dynamodb_usage_items import (
    AT_ONCE,
    HOLD,
    PARTITION_KEY,
    SORT_KEY,
    TTL_ATTRIBUTE,
    Item,
    caller_key,
    held_amount,
    hold_value,
    holds,
    mark_item,
    minute_name,
    month_sums,
    number,
    owner,
    past_minutes,
    place,
    record_item,
    record_place,
    usage_of,
)

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["PARTITION_KEY", "SORT_KEY", "TTL_ATTRIBUTE", "DynamoUsage"]

_FAILED = "ConditionalCheckFailed"
_REFUSED = "ConditionalCheckFailedException"
_CANCELLED = "TransactionCanceledException"
_FINAL = frozenset({"AccessDeniedException", "ResourceNotFoundException", "ValidationException"})
"""Codes that the same call would meet again."""
_LONGEST_PAUSE = 0.4

T = TypeVar("T")


class DynamoUsage:
    """A `UsageStore` in the table `table`. A call ends within about `deadline_seconds`.

    `timer` and `sleep` are in seconds. Of calls of one caller that settle at once some meet each other's transactions:
    they are tried again, with jitter.
    """

    def __init__(
        self,
        table: str,
        aws: AwsSettings | None = None,
        *,
        deadline_seconds: float = 5.0,
        timer: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        settings = aws or AwsSettings()
        self._aws = Aws(replace(settings, timeout_seconds=min(settings.timeout_seconds, deadline_seconds / 2)))
        self._table = table
        self._deadline_seconds = deadline_seconds
        self._timer = timer
        self._sleep = sleep

    def reserve(self, hold: Hold, *, per_minute: int, now: int) -> Reserved:
        """Take a place in the minute and the amount, by one update."""
        while True:
            item, done = self._reserved(hold, per_minute)
            gave_back, balance = self._gave_back(item, now, but=hold), number(item, "balance")
            if done:
                return Reserved("held", replace(hold, litter=past_minutes(item, hold)), balance)
            if per_minute and number(item, minute_name(hold)) >= per_minute:
                return Reserved("too_many", hold, balance)
            if not gave_back:
                return Reserved("too_little", hold, balance)

    def raise_to(self, hold: Hold, amount: int, *, until: int, now: int) -> Reserved:
        """Hold another amount."""
        held: int | None = hold.amount
        while True:
            item, done = self._raised(hold, held, amount, until)
            balance, found = number(item, "balance"), held_amount(item, hold.call_id)
            if done or found == amount:  # the latter by a try whose answer was lost
                return Reserved("held", replace(hold, amount=amount, until=until), balance)
            if found != held:
                held = found
            elif not self._gave_back(item, now, but=hold):
                return Reserved("too_little", replace(hold, amount=found or 0), balance)

    def settle(
        self, usage: Usage, *, keep_until: int, hold: Hold | None = None, mark: str = "", mark_until: int = 0
    ) -> Settled:
        """Write a record, add it to its month, take its charge and end its hold, by one transaction."""
        writes = [self._new(record_item(usage, keep_until)), self._added(usage)]
        if mark:
            writes.append(self._new(mark_item(usage.caller_id, mark, usage.call_id, mark_until)))
        held = hold.amount if hold is not None else None
        while True:
            account = self._ended(usage, hold, held)
            refused = self._transact([*writes, *account])
            if not refused or 0 in refused:
                return "written"  # or it was, by a try whose answer was lost
            if mark and 2 in refused:
                return "charged_before"
            found = held_amount(refused[len(writes)], hold.call_id) if hold is not None else None
            if found == held:
                return "unpaid"
            held = found

    def marked(self, caller_id: str, mark: str) -> str | None:
        """The call that left a mark."""
        item = self._get(owner(caller_id), f"mark:{mark}")
        return str(item["call_id"]["S"]) if item else None

    def refund(self, caller_id: str, call_id: str, *, at: int, keep_until: int) -> Usage | None:
        """Give a charge back, once."""
        mark = refund_mark(call_id)
        while True:
            done = self.marked(caller_id, mark)
            if done is not None:
                return self._record(caller_id, done)
            charged = self._record(caller_id, call_id)
            if charged is None or charged.charge <= 0:
                return None
            usage = refund_of(charged, at)
            writes = [
                self._new(record_item(usage, keep_until)),
                self._new(mark_item(caller_id, mark, usage.call_id, keep_until)),
                self._added(usage),
            ]
            if usage.prepaid:
                writes.append(self._paid(caller_id, charged.charge))
            if not self._transact(writes):
                return usage

    def grant(self, grant: Grant) -> bool:
        """Give credit, once for each reference."""
        item = {
            **place(owner(grant.caller_id), f"grant:{grant.reference}"),
            "amount": {"N": str(grant.amount)},
            "at": {"N": str(grant.at)},
        }
        refused = self._transact([self._new(item), self._paid(grant.caller_id, grant.amount)])
        return not refused or number(refused[0], "amount") == grant.amount

    def account(self, caller_id: str, *, now: int) -> Account:
        """A caller's credit."""
        item = self._get(owner(caller_id), "account")
        under_way = holds(item).values()
        over = sum(amount for amount, until in under_way if until <= now)
        return Account(caller_id, number(item, "balance") + over, sum(amount for amount, _ in under_way) - over)

    def month(self, caller_id: str, month: str) -> Month:
        """The sums of one caller."""
        return month_sums(caller_id, month, self._get(f"m:{month}", caller_key(caller_id)))

    def months(self, month: str) -> list[Month]:
        """The sums of every caller."""
        found = self._query(f"m:{month}", "")
        return sorted((month_sums(item["caller_id"]["S"], month, item) for item in found), key=lambda m: m.caller_id)

    def records(self, caller_id: str, month: str) -> list[Usage]:
        """A caller's records of a month."""
        return [usage_of(item) for item in self._query(owner(caller_id), f"call:{month}:")]

    @cached_property
    def _client(self) -> "DynamoDBClient":
        return self._aws.dynamodb()

    def _record(self, caller_id: str, call_id: str) -> Usage | None:
        began_at = began_in(call_id)
        item = self._get(owner(caller_id), record_place(call_id, began_at)) if began_at is not None else {}
        return usage_of(item) if item else None

    def _reserved(self, hold: Hold, per_minute: int) -> tuple[Item, bool]:
        names = {"#hold": f"{HOLD}{hold.call_id}"}
        values = {":hold": hold_value(hold.amount, hold.until)}
        conditions, adds = ["attribute_not_exists(#hold)"], []
        if per_minute:
            names["#minute"] = minute_name(hold)
            values |= {":limit": {"N": str(per_minute)}, ":one": {"N": "1"}}
            conditions.append("(attribute_not_exists(#minute) OR #minute < :limit)")
            adds.append("#minute :one")
        if hold.amount:
            values |= {":amount": {"N": str(hold.amount)}, ":less": {"N": str(-hold.amount)}}
            conditions.append("balance >= :amount")
            adds.append("balance :less")
        update = "SET #hold = :hold" + (f" ADD {', '.join(adds)}" if adds else "")
        item, done = self._update(hold.caller_id, update, " AND ".join(conditions), names, values)
        return item, done or hold.call_id in holds(item)

    def _raised(self, hold: Hold, held: int | None, amount: int, until: int) -> tuple[Item, bool]:
        """Hold `amount` where so much is held, or nothing."""
        more = amount - (held or 0)
        values = {":hold": hold_value(amount, until), ":less": {"N": str(-more)}}
        conditions = ["attribute_not_exists(#hold)"]
        if held is not None:
            values[":held"] = {"N": str(held)}
            conditions = ["#hold.amount = :held"]
        if more > 0:
            values[":more"] = {"N": str(more)}
            conditions.append("balance >= :more")
        names = {"#hold": f"{HOLD}{hold.call_id}"}
        return self._update(
            hold.caller_id, "SET #hold = :hold ADD balance :less", " AND ".join(conditions), names, values
        )

    def _gave_back(self, item: Item, now: int, but: Hold) -> bool:
        """End holds of this account that are over, `but` one; whether there were any."""
        over = {i: amount for i, (amount, until) in holds(item).items() if until <= now and i != but.call_id}
        some = dict(list(over.items())[:AT_ONCE])
        if some:
            names = {f"#h{n}": f"{HOLD}{call_id}" for n, call_id in enumerate(some)}
            # Whoever is first gives them back: for another the condition fails, and it looks again.
            condition = " AND ".join(f"attribute_exists({name})" for name in names)
            update = f"ADD balance :sum REMOVE {', '.join(names)}"
            self._update(but.caller_id, update, condition, names, {":sum": {"N": str(sum(some.values()))}})
        return bool(some)

    def _ended(self, usage: Usage, hold: Hold | None, held: int | None) -> list[Any]:
        """What settling does to the account where so much is held, or nothing; no write where that is nothing."""
        taken = usage.charge if usage.prepaid else 0
        more = (held or 0) - taken
        names: dict[str, str] = {}
        values: Item = {}
        parts, conditions = [], []
        if more:
            values[":more"] = {"N": str(more)}
            parts.append("ADD balance :more")
        if hold is not None:
            names["#hold"] = f"{HOLD}{hold.call_id}"
            conditions.append("attribute_not_exists(#hold)")
        if hold is not None and held is not None:
            values[":held"] = {"N": str(held)}
            conditions = ["#hold.amount = :held"]
            names |= {f"#l{n}": name for n, name in enumerate(hold.litter)}
            parts.append(f"REMOVE {', '.join(names)}")
        if more < 0:
            values[":need"] = {"N": str(-more)}
            conditions.append("balance >= :need")
        if not parts:
            return []
        write = {
            "TableName": self._table,
            "Key": place(owner(usage.caller_id), "account"),
            "UpdateExpression": " ".join(parts),
            "ConditionExpression": " AND ".join(conditions),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        write |= {"ExpressionAttributeNames": names} if names else {}
        return [{"Update": write | ({"ExpressionAttributeValues": values} if values else {})}]

    def _new(self, item: Item) -> Any:
        return {
            "Put": {
                "TableName": self._table,
                "Item": item,
                "ConditionExpression": "attribute_not_exists(#owner)",
                "ExpressionAttributeNames": {"#owner": PARTITION_KEY},
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        }

    def _added(self, usage: Usage) -> Any:
        """A record's part in its month."""
        sums = Month.added(usage)
        return {
            "Update": {
                "TableName": self._table,
                "Key": place(f"m:{usage.month}", caller_key(usage.caller_id)),
                "UpdateExpression": "SET #caller = :caller ADD " + ", ".join(f"#{name} :{name}" for name in sums),
                # By substitute: some are words of the language.
                "ExpressionAttributeNames": {"#caller": "caller_id", **{f"#{name}": name for name in sums}},
                "ExpressionAttributeValues": {
                    ":caller": {"S": usage.caller_id},
                    **{f":{name}": {"N": str(count)} for name, count in sums.items()},
                },
            }
        }

    def _paid(self, caller_id: str, amount: int) -> Any:
        return {
            "Update": {
                "TableName": self._table,
                "Key": place(owner(caller_id), "account"),
                "UpdateExpression": "ADD balance :amount",
                "ExpressionAttributeValues": {":amount": {"N": str(amount)}},
            }
        }

    def _update(
        self, caller_id: str, update: str, condition: str, names: dict[str, str], values: Item
    ) -> tuple[Item, bool]:
        """Change the account; the item after it and true, or the item as it is and false where it was refused."""

        def tried() -> tuple[Item, bool]:
            try:
                told = self._client.update_item(
                    TableName=self._table,
                    Key=place(owner(caller_id), "account"),
                    UpdateExpression=update,
                    ConditionExpression=condition,
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except self._aws.failures as error:
                if error_code(error) != _REFUSED:
                    raise
                return _response(error).get("Item", {}), False
            return told["Attributes"], True

        return self._persistently(tried)

    def _transact(self, writes: list[Any]) -> dict[int, Item]:
        """Nothing when all was written; else the places of the writes whose conditions failed, with what was there."""

        def tried() -> dict[int, Item]:
            try:
                self._client.transact_write_items(TransactItems=writes)
            except self._aws.failures as error:
                reasons = _response(error).get("CancellationReasons", [])
                refused = {n: each.get("Item", {}) for n, each in enumerate(reasons) if each.get("Code") == _FAILED}
                if error_code(error) == _CANCELLED and refused:
                    return refused
                raise
            return {}

        return self._persistently(tried)

    def _get(self, owner: str, item: str) -> Item:
        found = self._persistently(
            lambda: self._client.get_item(TableName=self._table, Key=place(owner, item), ConsistentRead=True)
        )
        return dict(found.get("Item", {}))

    def _query(self, owner: str, prefix: str) -> list[Item]:
        question: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "#owner = :owner" + (" AND begins_with(#item, :prefix)" if prefix else ""),
            "ExpressionAttributeNames": {"#owner": PARTITION_KEY, **({"#item": SORT_KEY} if prefix else {})},
            "ExpressionAttributeValues": {
                ":owner": {"S": owner},
                **({":prefix": {"S": prefix}} if prefix else {}),
            },
        }
        found: list[Item] = []
        while True:
            page = self._persistently(lambda: self._client.query(**question))
            found += page["Items"]
            if "LastEvaluatedKey" not in page:
                return found
            question["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _persistently(self, call: Callable[[], T]) -> T:
        deadline = self._timer() + self._deadline_seconds
        attempt = 0
        while True:
            try:
                return call()
            except self._aws.failures as error:
                pause = secrets.SystemRandom().uniform(0, min(0.02 * 2**attempt, _LONGEST_PAUSE))
                if error_code(error) in _FINAL or self._timer() + pause > deadline:
                    raise unreachable(error) from error
            self._sleep(pause)
            attempt += 1


def _response(error: Exception) -> Mapping[str, Any]:
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    return response
