"""API keys in DynamoDB, one item for each.

    key_id      S  partition key: the public part of a key
    digest      B  SHA-256 of its secret
    name        S  whom it speaks for
    created_at, expires_at, revoked_at, used_at   N  microseconds since 1970; the last three only where they are set

Decides that each change is one conditional write, and that every read is strongly consistent: a revocation counts for
whoever reads after it. Nothing is deleted by time: an operator wants to see what was revoked. Must never know a secret.
"""

import secrets
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from engine.ports import Key
from infra.aws import Aws, AwsSettings, error_code, unreachable

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["PARTITION_KEY", "DynamoKeys"]

PARTITION_KEY = "key_id"

_REFUSED = "ConditionalCheckFailedException"

T = TypeVar("T")


class DynamoKeys:
    """A `KeyStore` in the table `table`. A call is tried `attempts` times; `sleep` takes seconds."""

    def __init__(
        self, table: str, aws: AwsSettings | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._table = table
        self._aws = Aws(aws or AwsSettings())
        self._sleep = sleep

    def add(self, key: Key) -> bool:
        """Keep a new key; false when its id is taken, by another key."""
        item = _item(key)
        if self._changes(
            lambda: self._client.put_item(
                TableName=self._table, Item=item, ConditionExpression=f"attribute_not_exists({PARTITION_KEY})"
            )
        ):
            return True
        # The first try may have been ours, whose answer was lost: no two keys share a digest.
        held = self.get(key.key_id)
        return held is not None and held.digest == key.digest

    def get(self, key_id: str) -> Key | None:
        """A key as it is now, `None` when there is none."""
        found = self._persistently(
            lambda: self._client.get_item(
                TableName=self._table, Key={PARTITION_KEY: {"S": key_id}}, ConsistentRead=True
            )
        )
        return _key(found["Item"]) if "Item" in found else None

    def all_keys(self) -> list[Key]:
        """Every key, oldest first."""
        question: dict[str, Any] = {"TableName": self._table, "ConsistentRead": True}
        found: list[Key] = []
        while True:
            page = self._persistently(lambda: self._client.scan(**question))
            found += [_key(item) for item in page["Items"]]
            if "LastEvaluatedKey" not in page:
                return sorted(found, key=lambda key: (key.created_at, key.key_id))
            question["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def revoke(self, key_id: str, at: int) -> bool:
        """Have a key open nothing from `at` on."""
        return self._sets(key_id, "revoked_at", at, earlier_stays=True) or self.get(key_id) is not None

    def used(self, key_id: str, at: int) -> None:
        """Note a use."""
        self._sets(key_id, "used_at", at, earlier_stays=False)

    @cached_property
    def _client(self) -> "DynamoDBClient":
        return self._aws.dynamodb()

    def _sets(self, key_id: str, name: str, at: int, *, earlier_stays: bool) -> bool:
        """Whether the instant was written: the key is there, and what it had gives way."""
        comparison = ">" if earlier_stays else "<"
        return self._changes(
            lambda: self._client.update_item(
                TableName=self._table,
                Key={PARTITION_KEY: {"S": key_id}},
                UpdateExpression="SET #name = :at",
                ConditionExpression=(
                    f"attribute_exists({PARTITION_KEY}) AND (attribute_not_exists(#name) OR #name {comparison} :at)"
                ),
                ExpressionAttributeNames={"#name": name},
                ExpressionAttributeValues={":at": {"N": str(at)}},
            )
        )

    def _changes(self, call: Callable[[], object]) -> bool:
        def tried() -> bool:
            try:
                call()
            except self._aws.failures as error:
                if error_code(error) == _REFUSED:
                    return False
                raise
            return True

        return self._persistently(tried)

    def _persistently(self, call: Callable[[], T]) -> T:
        attempt = 1
        while True:
            try:
                return call()
            except self._aws.failures as error:
                if not self._aws.passing(error) or attempt >= self._aws.settings.attempts:
                    raise unreachable(error) from error
            self._sleep(secrets.SystemRandom().uniform(0, 0.05 * 2**attempt))
            attempt += 1


def _item(key: Key) -> dict[str, Any]:
    item: dict[str, Any] = {
        PARTITION_KEY: {"S": key.key_id},
        "digest": {"B": key.digest},
        "name": {"S": key.name},
        "created_at": {"N": str(key.created_at)},
    }
    for name in ("expires_at", "revoked_at", "used_at"):
        instant: int | None = getattr(key, name)
        if instant is not None:
            item[name] = {"N": str(instant)}
    return item


def _key(item: dict[str, Any]) -> Key:
    def instant(name: str) -> int | None:
        return int(item[name]["N"]) if name in item else None

    return Key(
        key_id=item[PARTITION_KEY]["S"],
        name=item["name"]["S"],
        digest=bytes(item["digest"]["B"]),
        created_at=int(item["created_at"]["N"]),
        expires_at=instant("expires_at"),
        revoked_at=instant("revoked_at"),
        used_at=instant("used_at"),
    )
