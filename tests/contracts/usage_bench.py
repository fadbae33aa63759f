"""Both stores of usage, empty, as one process opens them or many do."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from engine.usage import UsageStore
from infra.aws import AwsSettings
from infra.dynamodb_usage import PARTITION_KEY, SORT_KEY, DynamoUsage
from infra.sqlite_usage import SqliteUsage
from tests.local_aws import LocalAws

__all__ = ["USAGE_ADAPTERS", "UsageBench", "new_usage_table", "open_usage", "usage_bench"]

USAGE_ADAPTERS = ["sqlite", pytest.param("dynamodb", marks=pytest.mark.aws)]


@dataclass(frozen=True, slots=True)
class UsageBench:
    """`arguments` are the adapter's name and what `open_usage` wants, in words that a command line takes."""

    arguments: tuple[str, ...]
    store: UsageStore


def open_usage(adapter: str, *arguments: str, sent: Callable[[str], None] | None = None) -> UsageStore:
    """A store by the words of a command line; `sent` is told of each request to DynamoDB."""
    if adapter == "sqlite":
        return SqliteUsage(Path(arguments[0]))
    table, endpoint = arguments
    return DynamoUsage(table, AwsSettings(endpoint_url=endpoint, sent=sent))


def usage_bench(request: pytest.FixtureRequest, folder: Path) -> UsageBench:
    """The bench of the adapter that the test is parametrised by."""
    if request.param == "sqlite":
        arguments: tuple[str, ...] = ("sqlite", str(folder / "state" / "usage.sqlite"))
    else:
        aws: LocalAws = request.getfixturevalue("local_aws")
        arguments = ("dynamodb", new_usage_table(aws), aws.dynamodb_endpoint)
    store = open_usage(*arguments)
    if isinstance(store, DynamoUsage):
        # Making a client takes longer than most tests.
        store.__dict__["_client"] = _client(arguments[2])
    return UsageBench(arguments, store)


@cache
def _client(endpoint: str) -> object:
    return DynamoUsage("any", AwsSettings(endpoint_url=endpoint))._client


def new_usage_table(aws: LocalAws) -> str:
    """The name of a new table with the adapter's keys."""
    name = f"usage-{os.urandom(6).hex()}"
    aws.dynamodb().create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": PARTITION_KEY, "KeyType": "HASH"},
            {"AttributeName": SORT_KEY, "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in (PARTITION_KEY, SORT_KEY)],
        BillingMode="PAY_PER_REQUEST",
    )
    return name
