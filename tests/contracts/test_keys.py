"""What every key store does."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from engine.errors import Unavailable
from engine.ports import Key, KeyStore
from infra.aws import AwsSettings
from infra.dynamodb_keys import PARTITION_KEY, DynamoKeys
from infra.sqlite_keys import SqliteKeys
from tests.contracts.benches import NOON
from tests.local_aws import LocalAws, free_ports

Open = Callable[[], KeyStore]

KEY = Key("0123456789abcdef", "Zoë", sha256(b"secret").digest(), NOON)


def new_keys_table(aws: LocalAws) -> str:
    name = f"keys-{os.urandom(6).hex()}"
    aws.dynamodb().create_table(
        TableName=name,
        KeySchema=[{"AttributeName": PARTITION_KEY, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": PARTITION_KEY, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


@pytest.fixture(params=["sqlite", pytest.param("dynamodb", marks=pytest.mark.aws)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Gives the store as another process would see it."""
    if request.param == "sqlite":
        return lambda: SqliteKeys(tmp_path / "state" / "keys.sqlite")
    aws: LocalAws = request.getfixturevalue("local_aws")
    table = new_keys_table(aws)
    return lambda: DynamoKeys(table, AwsSettings(endpoint_url=aws.dynamodb_endpoint))


def test_an_unknown_key_is_none_and_cannot_be_changed(opened: Open) -> None:
    store = opened()
    assert store.get("nobody") is None
    assert not store.revoke("nobody", NOON)
    store.used("nobody", NOON)
    assert store.all_keys() == []


@pytest.mark.parametrize("times", [{}, {"expires_at": NOON + 1, "revoked_at": NOON + 2, "used_at": NOON + 3}])
def test_a_key_comes_back_whole(opened: Open, times: dict[str, int]) -> None:
    key = replace(KEY, **times)  # type: ignore[arg-type]  # instants by name
    assert opened().add(key)
    assert opened().get(KEY.key_id) == key
    assert opened().all_keys() == [key]


def test_an_id_is_given_once_and_the_first_key_stays(opened: Open) -> None:
    store = opened()
    assert store.add(KEY)
    assert not store.add(replace(KEY, digest=b"another", name="Eve"))
    assert store.get(KEY.key_id) == KEY


def test_keys_are_listed_oldest_first(opened: Open) -> None:
    store = opened()
    keys = [replace(KEY, key_id=f"{n:016x}", created_at=NOON - n) for n in range(5)]
    assert all(map(store.add, keys))
    assert store.all_keys() == keys[::-1]


def test_a_revocation_is_seen_by_all_and_an_earlier_one_stays(opened: Open) -> None:
    store = opened()
    store.add(KEY)
    assert store.revoke(KEY.key_id, NOON + 10)
    assert opened().get(KEY.key_id) == replace(KEY, revoked_at=NOON + 10)
    assert store.revoke(KEY.key_id, NOON + 20)
    assert opened().get(KEY.key_id) == replace(KEY, revoked_at=NOON + 10)
    assert store.revoke(KEY.key_id, NOON + 5)
    assert opened().get(KEY.key_id) == replace(KEY, revoked_at=NOON + 5)


def test_the_last_use_is_the_latest_noted_and_revokes_nothing(opened: Open) -> None:
    store = opened()
    store.add(replace(KEY, revoked_at=NOON))
    for at in (NOON + 10, NOON + 30, NOON + 20):
        store.used(KEY.key_id, at)
    assert opened().get(KEY.key_id) == replace(KEY, revoked_at=NOON, used_at=NOON + 30)


def test_of_eight_who_add_one_id_one_is_first(opened: Open) -> None:
    store = opened()
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda n: store.add(replace(KEY, digest=bytes([n]))), range(8)))
    assert added.count(True) == 1
    found = store.get(KEY.key_id)
    assert found is not None
    assert found.digest == bytes([added.index(True)])


def test_a_file_that_is_no_database_is_told_without_its_path(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(Unavailable) as told:
        SqliteKeys(path).get("x")
    assert str(tmp_path) not in told.value.to_text() + told.value.detail
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    SqliteKeys(tmp_path / "keys.sqlite").all_keys()
    assert (tmp_path / "keys.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.aws
def test_a_table_out_of_reach_is_told_after_its_tries(local_aws: LocalAws) -> None:
    del local_aws  # for its credentials
    pauses: list[float] = []
    (port,) = free_ports(1)
    settings = AwsSettings("us-east-1", f"http://127.0.0.1:{port}", timeout_seconds=1, attempts=3)
    with pytest.raises(Unavailable):
        DynamoKeys("keys", settings, sleep=pauses.append).get("x")
    assert len(pauses) == 2


@pytest.mark.parametrize(
    ("expires", "revoked", "opens"),
    [(None, None, True), (1, None, True), (0, None, False), (None, 0, False), (None, 1, True), (1, 0, False)],
)
def test_a_key_opens_until_it_expires_or_is_revoked(
    expires: int | None,
    revoked: int | None,
    opens: bool,  # noqa: FBT001 - a table
) -> None:
    ends = [None if each is None else NOON + each for each in (expires, revoked)]
    assert replace(KEY, expires_at=ends[0], revoked_at=ends[1]).opens(NOON) is opens
