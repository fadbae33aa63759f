"""A lock in DynamoDB: one item per name, with an owner and an expiry.

    name         S  what is locked
    owner        S  who holds it, a random word
    expires_at   N  seconds since 1970; from then on anyone may take it, and some time later it is deleted

Decides who holds a lock. It keeps work from being done twice; that two do not publish is the snapshot store's
conditional write. Must never know what the lock protects.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from secrets import token_hex
from typing import TYPE_CHECKING

from engine.errors import Refused
from infra.aws import Aws, AwsSettings, error_code, unreachable

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["DynamoDbLock"]

KEY = "name"
EXPIRY = "expires_at"


class DynamoDbLock:
    """The lock `name` in `table`. `clock` gives seconds since 1970. Safe to use from several processes."""

    def __init__(
        self, table: str, name: str, aws: AwsSettings | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._table = table
        self._name = name
        self._aws = Aws(aws or AwsSettings())
        self._clock = clock
        self._owner = ""

    @cached_property
    def client(self) -> "DynamoDBClient":
        """Made by the first call, not before."""
        return self._aws.dynamodb()

    def take(self, seconds: float) -> None:
        """Hold the lock for at most `seconds` from now.

        Raises:
            Refused: `refresh_running` when another holds it.
            Unavailable: the table cannot be reached; the lock may then be taken until it expires.
        """
        now = self._clock()
        owner = token_hex(16)
        try:
            self.client.put_item(
                TableName=self._table,
                Item={
                    KEY: {"S": self._name},
                    "owner": {"S": owner},
                    EXPIRY: {"N": str(int(now + seconds) + 1)},
                },
                ConditionExpression="attribute_not_exists(#name) OR #expiry <= :now",
                ExpressionAttributeNames={"#name": KEY, "#expiry": EXPIRY},
                ExpressionAttributeValues={":now": {"N": str(int(now))}},
            )
        except self._aws.failures as error:
            if error_code(error) == "ConditionalCheckFailedException":
                raise Refused(
                    "refresh_running", "another refresh is running", next_step="wait until it is done"
                ) from None
            raise unreachable(error) from error
        self._owner = owner

    def release(self) -> None:
        """Give the lock back if it is still held; never raises, since it also ends by itself."""
        if not self._owner:
            return
        with suppress(*self._aws.failures):
            self.client.delete_item(
                TableName=self._table,
                Key={KEY: {"S": self._name}},
                ConditionExpression="#owner = :owner",
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues={":owner": {"S": self._owner}},
            )
        self._owner = ""
