"""API keys: how one is made, what recognises it, and when it ends."""

import hmac
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

import pytest

from engine.errors import Unavailable
from engine.ports import Key
from handler.auth.api_key import ApiKeys, _Remembered, mint_key
from handler.auth.identity import Identity
from infra.sqlite_keys import SqliteKeys
from tests.handler.auth.stores import NOON, SECOND, Asked, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Asked:
    return Asked(SqliteKeys(tmp_path / "keys.sqlite"))


@pytest.fixture
def keys(store: Asked, clock: Clock) -> ApiKeys:
    return ApiKeys(store, clock)


def test_a_key_has_256_bits_and_is_kept_as_a_digest_alone(store: Asked, tmp_path: Path) -> None:
    key, credential = mint_key("billing", NOON)
    store.add(key)
    prefix, key_id, secret = credential.split("_", 2)
    assert (prefix, key_id, len(secret)) == ("hf", key.key_id, 43)
    assert key.digest == sha256(secret.encode()).digest()
    assert secret.encode() not in (tmp_path / "keys.sqlite").read_bytes()
    assert len({mint_key("billing", NOON)[1] for _ in range(100)}) == 100


def test_a_key_speaks_for_its_name(keys: ApiKeys, store: Asked) -> None:
    key, credential = mint_key("billing", NOON)
    store.add(key)
    assert keys.identify(credential) == Identity(("key:billing", f"key-id:{key.key_id}"))


def test_whatever_is_wrong_with_a_key_is_nobody(keys: ApiKeys, store: Asked, clock: Clock) -> None:
    key, credential = mint_key("billing", NOON, NOON + 60 * SECOND)
    other, another = mint_key("other", NOON)
    foreign = mint_key("billing", NOON)[1]
    store.add(key)
    store.add(other)
    wrong = [
        "",
        "hf_",
        credential[:-1],
        credential + "A",
        credential.upper(),
        credential[:20] + another[20:],
        f" {credential}",
        f"{credential}\n",
        credential.replace("_", "-"),
        foreign,
        "hf_" + "é" * 16 + "_" + "A" * 43,
    ]
    assert [keys.identify(each) for each in wrong] == [None] * len(wrong)
    clock.pass_seconds(60)
    assert keys.identify(credential) is None
    assert keys.identify(another) is not None


def test_a_revocation_counts_within_a_minute_whatever_is_remembered(keys: ApiKeys, store: Asked, clock: Clock) -> None:
    key, credential = mint_key("billing", NOON)
    store.add(key)
    for _ in range(3):
        assert keys.identify(credential) is not None
        clock.pass_seconds(9)
    store.revoke(key.key_id, clock.now)
    clock.pass_seconds(59)
    assert keys.identify(credential) is None


def test_use_does_not_put_a_revocation_off(keys: ApiKeys, store: Asked, clock: Clock) -> None:
    key, credential = mint_key("billing", NOON)
    store.add(key)
    keys.identify(credential)
    store.revoke(key.key_id, clock.now)
    answers = []
    for _ in range(60):
        clock.pass_seconds(1)
        answers.append(keys.identify(credential) is not None)
    assert answers == [True] * 29 + [False] * 31


class Slow(Key):
    """A key whose holder is held up between the proof and the note of its use, for as long as `meanwhile` takes."""

    meanwhile: ClassVar[Callable[[], None]]

    def opens(self, now: int) -> bool:
        opened = Key.opens(self, now)
        meanwhile, Slow.meanwhile = Slow.meanwhile, lambda: None
        meanwhile()
        return opened


def test_a_use_that_is_noted_late_does_not_undo_a_revocation_read_meanwhile(
    keys: ApiKeys, store: Asked, clock: Clock
) -> None:
    key, credential = mint_key("billing", NOON)
    store.add(key)
    keys._remembered[key.key_id] = _Remembered(Slow(key.key_id, key.name, key.digest, key.created_at), clock.now)
    seen: list[Identity | None] = []

    def revoked_and_read() -> None:
        store.revoke(key.key_id, clock.now)
        clock.pass_seconds(31)
        seen.append(keys.identify(credential))

    Slow.meanwhile = revoked_and_read
    assert keys.identify(credential) is not None
    seen.append(keys.identify(credential))
    assert seen == [None, None]


def test_the_last_use_is_written_once_a_minute(keys: ApiKeys, store: Asked, clock: Clock) -> None:
    key, credential = mint_key("billing", NOON)
    store.add(key)
    for _ in range(121):
        keys.identify(credential)
        clock.pass_seconds(1)
    found = store.get(key.key_id)
    assert found is not None
    assert found.used_at == NOON + 120 * SECOND
    assert store.calls.count("used") == 3


def test_a_wrong_secret_is_no_use(keys: ApiKeys, store: Asked) -> None:
    key, credential = mint_key("billing", NOON)
    store.add(key)
    keys.identify(credential[:-3] + "AAA")
    assert store.calls == ["get"]


def test_an_unknown_id_takes_the_same_reads_and_comparisons(
    keys: ApiKeys, store: Asked, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    key, credential = mint_key("billing", NOON)
    store.add(key)
    wrong = credential[:-3] + "AAA"
    unknown = "hf_" + "0" * 16 + credential[19:]
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def noted(left: bytes, right: bytes) -> bool:
        compared.append((len(left), len(right)))
        return real(left, right)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    traces = []
    for presented in (wrong, unknown):
        store.calls.clear()
        compared.clear()
        for pause in (0, 10, 25, 40):
            clock.pass_seconds(pause)
            assert keys.identify(presented) is None
        traces.append((list(store.calls), list(compared)))
    assert traces[0] == traces[1]
    assert traces[0] == (["get"] * 3, [(32, 32)] * 4)


def test_ids_that_are_guessed_fill_no_memory(keys: ApiKeys, store: Asked) -> None:
    for n in range(5_000):
        keys.identify(f"hf_{n:016x}_{'A' * 43}")
    assert len(keys._remembered) == 4_096
    assert len(store.calls) == 5_000


def test_a_store_out_of_reach_is_told_of_every_key_alike(keys: ApiKeys, store: Asked) -> None:
    key, credential = mint_key("billing", NOON)
    store.add(key)
    store.gone = True
    for presented in (credential, credential[:-3] + "AAA", "hf_" + "0" * 16 + credential[19:]):
        with pytest.raises(Unavailable):
            keys.identify(presented)


def test_a_use_that_cannot_be_noted_keeps_nobody_out(keys: ApiKeys, store: Asked, clock: Clock) -> None:
    key, credential = mint_key("billing", NOON)
    store.add(key)
    keys.identify(credential)
    clock.pass_seconds(29)
    keys.identify(credential)
    store.gone = True
    assert keys.identify(credential) is not None
