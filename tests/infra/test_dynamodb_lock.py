"""The lock of a refresh, on a real table."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from engine.errors import Refused, Unavailable
from infra.aws import AwsSettings
from infra.dynamodb_lock import DynamoDbLock
from tests.infra.template_reader import load_template
from tests.local_aws import LocalAws
from tests.lost_answers import lose_answers, lose_requests

pytestmark = pytest.mark.aws


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def table(local_aws: LocalAws) -> Iterator[str]:
    properties = load_template().resources["LockTable"]["Properties"]
    name = f"lock-{uuid4().hex[:12]}"
    local_aws.dynamodb().create_table(
        TableName=name,
        **{key: properties[key] for key in ("BillingMode", "AttributeDefinitions", "KeySchema")},
    )
    yield name
    local_aws.dynamodb().delete_table(TableName=name)


def lock(table: str, aws: LocalAws, clock: Clock, name: str = "refresh") -> DynamoDbLock:
    settings = AwsSettings(endpoint_url=aws.dynamodb_endpoint)
    return DynamoDbLock(table, name, settings, clock=clock, sleep=lambda _: None)


def test_one_holds_it_until_it_gives_it_back(table: str, local_aws: LocalAws) -> None:
    clock = Clock()
    first, second = lock(table, local_aws, clock), lock(table, local_aws, clock)
    first.take(100, "first")
    with pytest.raises(Refused, match="another refresh is running"):
        second.take(100, "second")
    first.release()
    second.take(100, "second")
    lock(table, local_aws, clock, "another").take(100, "third")


def test_it_ends_by_itself_and_the_late_one_takes_nothing_away(table: str, local_aws: LocalAws) -> None:
    clock = Clock()
    first, second = lock(table, local_aws, clock), lock(table, local_aws, clock)
    first.take(100, "first")
    clock.now += 100
    with pytest.raises(Refused):
        second.take(100, "second")
    clock.now += 2
    second.take(100, "second")
    first.release()
    with pytest.raises(Refused):
        first.take(100, "first")
    second.release()
    assert local_aws.dynamodb().scan(TableName=table)["Items"] == []


def test_a_lock_that_outlives_a_killed_refresh_is_taken_again_by_its_next_try(table: str, local_aws: LocalAws) -> None:
    clock = Clock()
    killed, again, other = (lock(table, local_aws, clock) for _ in range(3))
    killed.take(100, "event")
    again.take(100, "event")
    with pytest.raises(Refused):
        other.take(100, "another event")
    again.release()
    other.take(100, "another event")


@pytest.mark.parametrize("lose", [lose_answers, lose_requests])
def test_what_a_bad_moment_loses_is_tried_again(
    table: str, local_aws: LocalAws, lose: Callable[[object, str], None]
) -> None:
    clock = Clock()
    held = lock(table, local_aws, clock)
    lose(held.client, "PutItem")
    held.take(100, "event")
    with pytest.raises(Refused):
        lock(table, local_aws, clock).take(100, "another event")
    lose(held.client, "DeleteItem")
    held.release()
    assert local_aws.dynamodb().scan(TableName=table)["Items"] == []


def test_a_table_that_is_not_there_is_told_and_giving_back_never_raises(local_aws: LocalAws) -> None:
    missing = lock("not-there", local_aws, Clock())
    missing.release()
    with pytest.raises(Unavailable) as caught:
        missing.take(1, "first")
    assert caught.value.detail == "ResourceNotFoundException"
