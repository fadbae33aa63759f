"""A lock in DynamoDB: one item per name, with an owner and an expiry.

    name         S  what is locked
    owner        S  who holds it: a word that stays the same when the same work is begun again
    expires_at   N  seconds since 1970; from then on anyone may take it, and some time later it is deleted

Decides who holds a lock; who was killed with it in hand takes it again at once. It keeps work from being done twice;
that two do not publish is the snapshot store's conditional write. Must never know what the lock protects.
"""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from engine.errors import Refused
from infra.aws import Aws, AwsSettings, error_code, unreachable

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["DynamoDbLock"]

KEY = "name"
EXPIRY = "expires_at"


class DynamoDbLock:
    """The lock `name` in `table`. Safe to use from several processes.

    `clock` gives seconds since 1970, `sleep` waits seconds. A call is tried `attempts` times.
    """

    def __init__(
        self,
        table: str,
        name: str,
        aws: AwsSettings | None = None,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._table = table
        self._name = name
        self._aws = Aws(aws or AwsSettings())
        self._clock = clock
        self._sleep = sleep
        self._owner = ""

    @cached_property
    def client(self) -> "DynamoDBClient":
        """Made by the first call, not before."""
        return self._aws.dynamodb()

    def take(self, seconds: float, owner: str) -> None:
        """Hold the lock for at most `seconds` from now, as `owner`, who may hold it already.

        Raises:
            Refused: `refresh_running` when another holds it.
            Unavailable: the table cannot be reached; the lock may then be taken until it expires.
        """

        def put() -> None:
            now = self._clock()
            self.client.put_item(
                TableName=self._table,
                Item={KEY: {"S": self._name}, "owner": {"S": owner}, EXPIRY: {"N": str(int(now + seconds) + 1)}},
                ConditionExpression="attribute_not_exists(#name) OR #expiry <= :now OR #owner = :owner",
                ExpressionAttributeNames={"#name": KEY, "#expiry": EXPIRY, "#owner": "owner"},
                ExpressionAttributeValues={":now": {"N": str(int(now))}, ":owner": {"S": owner}},
            )

        try:
            self._persistently(put)
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

        def delete() -> None:
            self.client.delete_item(
                TableName=self._table,
                Key={KEY: {"S": self._name}},
                ConditionExpression="#owner = :owner",
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues={":owner": {"S": self._owner}},
            )

        with suppress(*self._aws.failures):
            self._persistently(delete)
        self._owner = ""

    def _persistently(self, call: Callable[[], None]) -> None:
        """Both calls may be made twice: what the first has done, the second finds done by the same owner."""
        for attempt in range(1, self._aws.settings.attempts + 1):
            try:
                call()
            except self._aws.failures as error:
                if attempt == self._aws.settings.attempts or not self._aws.passing(error):
                    raise
                self._sleep(secrets.SystemRandom().uniform(0, 0.05 * 2**attempt))
            else:
                return
