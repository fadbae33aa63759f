"""Seen-sets in DynamoDB, one small item for each batch.

    session     S  partition key: SHA-256 of the session's handle, in hex, since the handle is a secret
    number      N  sort key: the batch's number
    expires_at  N  seconds since 1970: the table's time to live
    claim       B  which call wrote the item, so that a call that lost its answer recognises its own
    the rest       the batch, field by field; packed keys as B

Decides what a claim is here: a put on the condition that there is no such item. Throttling, timeouts and
faults of the service are tried again, with jitter, within a deadline. Must never know what the keys
of a batch mean.
"""

import secrets
import time
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from engine.deadline import seconds_left
from engine.errors import Refused
from engine.ports import Batch
from infra.aws import Aws, AwsSettings, error_code, unreachable

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["PARTITION_KEY", "SORT_KEY", "TTL_ATTRIBUTE", "DynamoSeen"]

PARTITION_KEY = "session"
SORT_KEY = "number"
TTL_ATTRIBUTE = "expires_at"

_MAX_ITEM_BYTES = 380_000
"""DynamoDB takes 400 KB, names and numbers included; 50 hits and what is around them take a hundredth."""

T = TypeVar("T")


def _now() -> int:
    return time.time_ns() // 1_000


class DynamoSeen:
    """A `SeenStore` in the table `table`.

    A call ends within about `deadline_seconds`, or what is left of the tool call it is part of, one try within a
    third of it. `clock` gives microseconds since 1970, UTC; `timer` and `sleep` are seconds; `sent` is told of each
    request.
    """

    def __init__(
        self,
        table: str,
        *,
        region: str | None = None,
        endpoint_url: str | None = None,
        deadline_seconds: float = 5.0,
        clock: Callable[[], int] = _now,
        timer: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        sent: Callable[[str], None] | None = None,
    ) -> None:
        self._aws = Aws(AwsSettings(region, endpoint_url, timeout_seconds=deadline_seconds / 3, sent=sent))
        self._table = table
        self._deadline_seconds = deadline_seconds
        self._clock = clock
        self._timer = timer
        self._sleep = sleep

    def batches(self, session: str) -> list[Batch]:
        """All batches of a session that have not expired, in order of number, strongly consistent."""
        question: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "#session = :session",
            # TTL deletes within days, not at the second.
            "FilterExpression": "#ttl > :now",
            "ExpressionAttributeNames": {"#session": PARTITION_KEY, "#ttl": TTL_ATTRIBUTE},
            "ExpressionAttributeValues": {
                ":session": {"S": _key(session)},
                ":now": {"N": str(self._clock() // 1_000_000)},
            },
        }
        deadline = self._timer() + min(self._deadline_seconds, seconds_left())
        found: list[Batch] = []
        while True:
            page = self._persistently(lambda: self._client.query(**question), deadline)
            found += [_batch(item) for item in page["Items"]]
            if "LastEvaluatedKey" not in page:
                return found
            question["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def claim(self, session: str, batch: Batch, expires_at: int) -> bool:
        """Write `batch` if its number is free.

        Raises:
            Refused: `batch_too_large`, far beyond what a page can show.
        """
        size = sum(map(len, (batch.shown, batch.around, batch.groups, batch.caller_id, batch.digest)))
        if size > _MAX_ITEM_BYTES:
            raise Refused("batch_too_large", f"a batch of {size} bytes is too large to remember")
        claim = secrets.token_bytes(16)
        item = _item(session, batch, expires_at, claim)
        tries = 0

        def put() -> bool:
            nonlocal tries
            tries += 1
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(#session)",
                    ExpressionAttributeNames={"#session": PARTITION_KEY},
                )
            except self._aws.failures as error:
                if error_code(error) == "ConditionalCheckFailedException":
                    return False
                raise
            return True

        deadline = self._timer() + min(self._deadline_seconds, seconds_left())
        if self._persistently(put, deadline):
            return True
        # After one try another call was first. After several it may have been ours, whose answer was lost.
        return tries > 1 and self._persistently(lambda: self._holder(item), deadline) == claim

    @cached_property
    def _client(self) -> "DynamoDBClient":
        return self._aws.dynamodb()

    def _holder(self, item: dict[str, Any]) -> bytes:
        key = {name: item[name] for name in (PARTITION_KEY, SORT_KEY)}
        held = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return held["Item"]["claim"]["B"] if "Item" in held else b""

    def _persistently(self, call: Callable[[], T], deadline: float) -> T:
        attempt = 0
        while True:
            try:
                return call()
            except self._aws.failures as error:
                pause = secrets.SystemRandom().uniform(0, min(0.05 * 2**attempt, 1.0))
                if not self._aws.passing(error) or self._timer() + pause > deadline:
                    raise unreachable(error) from error
            self._sleep(pause)
            attempt += 1


def _key(session: str) -> str:
    return sha256(session.encode("utf-8", "surrogatepass")).hexdigest()


def _item(session: str, batch: Batch, expires_at: int, claim: bytes) -> dict[str, Any]:
    return {
        PARTITION_KEY: {"S": _key(session)},
        SORT_KEY: {"N": str(batch.number)},
        TTL_ATTRIBUTE: {"N": str(-(-expires_at // 1_000_000))},
        "claim": {"B": claim},
        "parent": {"N": str(batch.parent)},
        "caller_id": {"S": batch.caller_id},
        "digest": {"S": batch.digest},
        "made_at": {"N": str(batch.made_at)},
        "started_at": {"N": str(batch.started_at)},
        "shown": {"B": batch.shown},
        "around": {"B": batch.around},
        "groups": {"B": batch.groups},
    }


def _batch(item: dict[str, Any]) -> Batch:
    return Batch(
        number=int(item[SORT_KEY]["N"]),
        parent=int(item["parent"]["N"]),
        caller_id=item["caller_id"]["S"],
        digest=item["digest"]["S"],
        made_at=int(item["made_at"]["N"]),
        started_at=int(item["started_at"]["N"]),
        shown=bytes(item["shown"]["B"]),
        around=bytes(item["around"]["B"]),
        groups=bytes(item["groups"]["B"]),
    )
