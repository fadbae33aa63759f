"""What every store of payments does."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from engine.errors import Unavailable
from engine.payments import Payment, PaymentStore
from infra.aws import AwsSettings
from infra.dynamodb_payments import PARTITION_KEY, DynamoPayments
from infra.sqlite_payments import SqlitePayments
from tests.contracts.benches import NOON, Clock
from tests.local_aws import LocalAws, free_ports
from tests.lost_answers import lose_answers

Open = Callable[[Callable[[], int]], PaymentStore]

PAYMENT = Payment("payment:1", "v1", "held", "0xaa", "search", "proof", NOON + 1, NOON + 60_000_001)


def new_payments_table(aws: LocalAws) -> str:
    name = f"payments-{os.urandom(6).hex()}"
    aws.dynamodb().create_table(
        TableName=name,
        KeySchema=[{"AttributeName": PARTITION_KEY, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": PARTITION_KEY, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


@pytest.fixture(params=["sqlite", pytest.param("dynamodb", marks=pytest.mark.aws)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Gives the store as another process would see it, with its clock."""
    if request.param == "sqlite":
        return lambda clock: SqlitePayments(tmp_path / "state" / "payments.sqlite", clock=clock)
    aws: LocalAws = request.getfixturevalue("local_aws")
    table = new_payments_table(aws)
    return lambda clock: DynamoPayments(table, AwsSettings(endpoint_url=aws.dynamodb_endpoint), clock=clock)


def test_a_payment_is_written_once_and_comes_back_whole(opened: Open) -> None:
    clock = Clock()
    assert opened(clock).get("payment:1") is None
    assert opened(clock).put(PAYMENT, None)
    assert not opened(clock).put(replace(PAYMENT, version="v2", payer="0xbb"), None)
    assert opened(clock).get("payment:1") == PAYMENT


def test_a_payment_is_changed_and_removed_only_at_the_version_that_is_known(opened: Open) -> None:
    store = opened(Clock())
    assert not store.put(PAYMENT, "v0")
    assert store.put(PAYMENT, None)
    later = replace(PAYMENT, version="v2", state="settling", batch=4, amount=2**80, lease_until=NOON + 5)
    assert not store.put(later, "v0")
    assert store.put(later, "v1")
    assert store.get("payment:1") == later
    assert not store.remove(PAYMENT)
    assert store.get("payment:1") == later
    assert store.remove(later)
    assert not store.remove(later)
    assert store.get("payment:1") is None


def test_a_payment_whose_time_is_over_is_gone_and_gives_way(opened: Open) -> None:
    clock = Clock()
    store = opened(clock)
    assert store.put(PAYMENT, None)
    clock.now = PAYMENT.expires_at
    assert store.get("payment:1") is None
    again = replace(PAYMENT, version="v2", expires_at=clock.now + 1)
    assert store.put(again, None)
    assert store.get("payment:1") == again


def test_of_many_that_want_one_payment_one_gets_it(opened: Open) -> None:
    clock = Clock()

    def want(number: int) -> bool:
        return opened(clock).put(replace(PAYMENT, version=str(number)), None)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(want, range(8))) == 1


@pytest.mark.aws
def test_a_write_whose_answer_was_lost_is_known_by_its_version(local_aws: LocalAws) -> None:
    store = DynamoPayments(
        new_payments_table(local_aws),
        AwsSettings(endpoint_url=local_aws.dynamodb_endpoint),
        clock=Clock(),
        sleep=lambda _: None,
    )
    lose_answers(store._client, "PutItem")
    assert store.put(PAYMENT, None)
    lose_answers(store._client, "PutItem")
    assert store.put(replace(PAYMENT, version="v2"), "v1")
    assert store.get("payment:1") == replace(PAYMENT, version="v2")


def test_a_store_that_cannot_be_reached_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    (port,) = free_ports(1)
    gone: list[PaymentStore] = [
        SqlitePayments(tmp_path / "file" / "payments.sqlite"),
        DynamoPayments(
            "payments", AwsSettings("us-east-1", f"http://127.0.0.1:{port}", attempts=2), sleep=lambda _: None
        ),
    ]
    for store in gone:
        calls: list[Callable[[], object]] = [
            partial(store.get, "payment:1"),
            partial(store.put, PAYMENT, None),
            partial(store.remove, PAYMENT),
        ]
        for call in calls:
            with pytest.raises(Unavailable) as refused:
                call()
            assert refused.value.code == "store_unreachable"
