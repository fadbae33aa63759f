"""Payments in DynamoDB: one item for each.

    payment_id   S  partition key
    version, state, payer, call, proof   S
    lease_until, batch, amount   N
    ends_at      N  microseconds since 1970; from then on the item is as good as deleted
    expires_at   N  the same in seconds, rounded up, after which DynamoDB deletes it some day

Decides that each change is one conditional write, and that a write whose answer was lost is known again by its
version. Must never know what a payment bought.
"""

import secrets
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from engine.payments import Payment, PaymentState
from infra.aws import Aws, AwsSettings, error_code, unreachable

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["PARTITION_KEY", "TTL_ATTRIBUTE", "DynamoPayments"]

PARTITION_KEY = "payment_id"
TTL_ATTRIBUTE = "expires_at"

_REFUSED = "ConditionalCheckFailedException"
_FINAL = frozenset({"AccessDeniedException", "ResourceNotFoundException", "ValidationException", _REFUSED})
"""Codes that the same call would meet again."""

_STRINGS = ("version", "state", "payer", "call", "proof")
_SECOND = 1_000_000

T = TypeVar("T")


def _now() -> int:
    return time.time_ns() // 1_000


class DynamoPayments:
    """A `PaymentStore` in the table `table`. A call is tried `attempts` times; `sleep` takes seconds."""

    def __init__(
        self,
        table: str,
        aws: AwsSettings | None = None,
        *,
        clock: Callable[[], int] = _now,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._table = table
        self._aws = Aws(aws or AwsSettings())
        self._clock = clock
        self._sleep = sleep

    def get(self, payment_id: str) -> Payment | None:
        """A payment as it is now, `None` when there is none or its time is over."""
        found = self._persistently(
            lambda: self._client.get_item(
                TableName=self._table, Key={PARTITION_KEY: {"S": payment_id}}, ConsistentRead=True
            )
        )
        payment = _payment(found["Item"]) if "Item" in found else None
        return payment if payment is not None and payment.expires_at > self._clock() else None

    def put(self, payment: Payment, instead_of: str | None) -> bool:
        """Write `payment` in place of a version."""
        if instead_of is None:
            condition = f"attribute_not_exists({PARTITION_KEY}) OR #ends_at <= :value"
            name, value = "ends_at", {"N": str(self._clock())}
        else:
            condition, name, value = "#version = :value", "version", {"S": instead_of}
        return self._changes(
            payment,
            lambda: self._client.put_item(
                TableName=self._table,
                Item=_item(payment),
                ConditionExpression=condition,
                ExpressionAttributeNames={f"#{name}": name},
                ExpressionAttributeValues={":value": cast("Any", value)},
            ),
        )

    def remove(self, payment: Payment) -> bool:
        """Forget a payment if it is still at this version."""
        return self._changes(
            None,
            lambda: self._client.delete_item(
                TableName=self._table,
                Key={PARTITION_KEY: {"S": payment.payment_id}},
                ConditionExpression="#version = :version",
                ExpressionAttributeNames={"#version": "version"},
                ExpressionAttributeValues={":version": {"S": payment.version}},
            ),
        )

    @cached_property
    def _client(self) -> "DynamoDBClient":
        return self._aws.dynamodb()

    def _changes(self, written: Payment | None, call: Callable[[], object]) -> bool:
        def tried() -> bool:
            try:
                call()
            except self._aws.failures as error:
                if error_code(error) == _REFUSED:
                    return False
                raise
            return True

        if self._persistently(tried):
            return True
        # The first try may have been ours, whose answer was lost: no two writes share a version.
        held = self.get(written.payment_id) if written is not None else None
        return held is not None and held == written

    def _persistently(self, call: Callable[[], T]) -> T:
        attempt = 1
        while True:
            try:
                return call()
            except self._aws.failures as error:
                if error_code(error) in _FINAL or attempt >= self._aws.settings.attempts:
                    raise unreachable(error) from error
            self._sleep(secrets.SystemRandom().uniform(0, 0.05 * 2**attempt))
            attempt += 1


def _item(payment: Payment) -> dict[str, Any]:
    return {
        PARTITION_KEY: {"S": payment.payment_id},
        **{name: {"S": getattr(payment, name)} for name in _STRINGS},
        "lease_until": {"N": str(payment.lease_until)},
        "batch": {"N": str(payment.batch)},
        "amount": {"N": str(payment.amount)},
        "ends_at": {"N": str(payment.expires_at)},
        TTL_ATTRIBUTE: {"N": str(-(-payment.expires_at // _SECOND))},
    }


def _payment(item: dict[str, Any]) -> Payment:
    return Payment(
        payment_id=item[PARTITION_KEY]["S"],
        version=item["version"]["S"],
        state=cast("PaymentState", item["state"]["S"]),
        payer=item["payer"]["S"],
        call=item["call"]["S"],
        proof=item["proof"]["S"],
        lease_until=int(item["lease_until"]["N"]),
        expires_at=int(item["ends_at"]["N"]),
        batch=int(item["batch"]["N"]),
        amount=int(item["amount"]["N"]),
    )
