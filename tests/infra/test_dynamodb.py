"""What is particular to DynamoDB: the items, throttling, lost answers, deadlines."""

import sys
import time
from base64 import b64encode
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from engine.errors import Refused, Unavailable
from engine.ports import Batch
from engine.seen import Session, packed
from infra import dynamodb
from infra.dynamodb import DynamoSeen
from tests.contracts.benches import NOON, new_table
from tests.local_aws import LocalAws, free_ports
from tests.lost_answers import answer_instead, before, lose_answers, lose_requests

pytestmark = pytest.mark.aws

HANDLE = "h4Jx0qk2TzW9bN7cVfY1Lg"
LATER = NOON + 86_400_000_000
THROTTLED = '{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slower"}'


class Pauses:
    """Time that passes only by pauses, which it writes down."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def timer(self) -> float:
        return sum(self.taken)

    def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def table(local_aws: LocalAws) -> str:
    return new_table(local_aws)


@pytest.fixture
def store(local_aws: LocalAws, table: str, pauses: Pauses) -> DynamoSeen:
    return open_store(local_aws.dynamodb_endpoint, table, pauses)


def open_store(endpoint: str, table: str, pauses: Pauses) -> DynamoSeen:
    return DynamoSeen(
        table, endpoint_url=endpoint, clock=lambda: NOON, timer=pauses.timer, sleep=pauses.sleep, deadline_seconds=3
    )


def a_batch(number: int, shown: bytes = b"12345678") -> Batch:
    return Batch(number, number - 1, "me", "d", NOON, NOON - 1, shown, b"around--", b"")


def test_item_holds_the_batch_and_a_digest_of_the_handle(store: DynamoSeen, local_aws: LocalAws, table: str) -> None:
    assert store.claim(HANDLE, a_batch(1), LATER + 1)
    (item,) = local_aws.dynamodb().scan(TableName=table)["Items"]
    claim = item.pop("claim")
    assert len(claim["B"]) == 16
    assert item == {
        "session": {"S": sha256(HANDLE.encode()).hexdigest()},
        "number": {"N": "1"},
        "expires_at": {"N": str(LATER // 1_000_000 + 1)},
        "parent": {"N": "0"},
        "caller_id": {"S": "me"},
        "digest": {"S": "d"},
        "made_at": {"N": str(NOON)},
        "started_at": {"N": str(NOON - 1)},
        "shown": {"B": b"12345678"},
        "around": {"B": b"around--"},
        "groups": {"B": b""},
    }


def test_lost_answer_to_a_claim_is_recognised_as_our_own(store: DynamoSeen, local_aws: LocalAws, table: str) -> None:
    lose_answers(store._client, "PutItem", times=2)
    assert store.claim(HANDLE, a_batch(1), LATER)
    assert not store.claim(HANDLE, a_batch(1), LATER)
    assert local_aws.dynamodb().scan(TableName=table)["Count"] == 1


def test_equal_batch_of_another_call_is_not_taken_for_our_own(
    store: DynamoSeen, local_aws: LocalAws, table: str
) -> None:
    other = open_store(local_aws.dynamodb_endpoint, table, Pauses())
    before(store._client, "PutItem", lambda: other.claim(HANDLE, a_batch(1), LATER))
    lose_answers(store._client, "PutItem")
    assert not store.claim(HANDLE, a_batch(1), LATER)
    assert store.batches(HANDLE) == [a_batch(1)]


def test_lost_requests_are_tried_again(store: DynamoSeen) -> None:
    lose_requests(store._client, "PutItem", times=2)
    lose_requests(store._client, "Query", times=2)
    assert store.claim(HANDLE, a_batch(1), LATER)
    assert store.batches(HANDLE) == [a_batch(1)]


def test_throttling_is_waited_out_with_growing_jitter(store: DynamoSeen, pauses: Pauses) -> None:
    answer_instead(store._client, "PutItem", 400, THROTTLED, times=3)
    assert store.claim(HANDLE, a_batch(1), LATER)
    assert len(pauses.taken) == 3
    assert all(0 <= pause <= 0.05 * 2**n for n, pause in enumerate(pauses.taken))


def test_endless_throttling_ends_within_the_deadline(store: DynamoSeen, pauses: Pauses) -> None:
    answer_instead(store._client, "PutItem", 400, THROTTLED, times=9_999)
    answer_instead(store._client, "Query", 500, "{}", times=9_999)
    with pytest.raises(Unavailable) as caught:
        store.claim(HANDLE, a_batch(1), LATER)
    assert caught.value.to_object() == {
        "code": "store_unreachable",
        "message": "the store did not answer as it should",
        "next": "call again",
    }
    assert 0 < pauses.timer() <= 3
    with pytest.raises(Unavailable):
        store.batches(HANDLE)
    assert pauses.timer() <= 6


def test_missing_table_fails_at_once(local_aws: LocalAws, pauses: Pauses) -> None:
    store = open_store(local_aws.dynamodb_endpoint, "none-of-this-name", pauses)
    with pytest.raises(Unavailable) as caught:
        store.batches(HANDLE)
    assert caught.value.detail == "ResourceNotFoundException"
    assert pauses.taken == []


@pytest.mark.parametrize("code", ["ValidationException", "AccessDeniedException", "UnrecognizedClientException"])
def test_what_is_refused_for_good_is_not_tried_again(store: DynamoSeen, pauses: Pauses, code: str) -> None:
    words = f'{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"no"}}'
    for operation, call in (
        ("Query", lambda: store.batches(HANDLE)),
        ("PutItem", lambda: store.claim(HANDLE, a_batch(1), LATER)),
    ):
        answer_instead(store._client, operation, 400, words, times=9)
        with pytest.raises(Unavailable) as caught:
            call()
        assert caught.value.detail == code
    assert pauses.taken == []


def test_what_cannot_even_be_sent_is_not_tried_again(
    local_aws: LocalAws, table: str, pauses: Pauses, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    store = open_store(local_aws.dynamodb_endpoint, table, pauses)
    with pytest.raises(Unavailable) as caught:
        store.batches(HANDLE)
    assert (caught.value.detail, pauses.taken) == ("NoCredentialsError", [])


@pytest.mark.usefixtures("local_aws")
def test_server_that_is_gone_is_a_clear_error(pauses: Pauses) -> None:
    store = open_store(f"http://127.0.0.1:{free_ports(1)[0]}", "seen", pauses)
    for call in (lambda: store.batches(HANDLE), lambda: store.claim(HANDLE, a_batch(1), LATER)):
        with pytest.raises(Unavailable) as caught:
            call()
        assert caught.value.code == "store_unreachable"
        assert HANDLE not in repr(caught.value.__dict__)


def test_session_of_several_pages_is_read_to_its_end(store: DynamoSeen) -> None:
    batches = [a_batch(n, shown=bytes([n]) * 300_000) for n in range(1, 8)]
    for batch in batches:
        assert store.claim(HANDLE, batch, LATER)
    queries = []
    before(store._client, "Query", lambda: queries.append(1), times=99)
    assert store.batches(HANDLE) == batches
    assert len(queries) > 1


def test_a_session_of_100_000_seen_messages_is_read_in_few_pages(
    store: DynamoSeen, local_aws: LocalAws, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = [a_batch(n, shown=packed(range(n * 50, n * 50 + 50))) for n in range(1, 2_001)]
    items = [dynamodb._item(HANDLE, batch, LATER, b"0123456789abcdef") for batch in batches]
    for start in range(0, len(items), 25):
        puts: Any = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
        local_aws.dynamodb().batch_write_item(RequestItems={table: puts})
    queries: list[int] = []
    before(store._client, "Query", lambda: queries.append(1), times=99)
    started, busy = time.perf_counter(), time.process_time()
    session = Session(HANDLE, "me", tuple(store.batches(HANDLE)))
    shown = np.arange(50, 100_050, dtype=np.uint64)
    assert session.seen(shown, shown).all()
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    assert len(session.keys) == 100_001  # and the one that stood around them
    # A page of DynamoDB's holds 1 MB; an item is its keys and a few hundred bytes.
    assert len(queries) <= 3
    assert store.claim(HANDLE, a_batch(2_001), LATER)
    with capsys.disabled():
        sys.stdout.write(
            f"\na session of 100,000 seen messages: {seconds:.2f} s, {len(queries)} requests (wanted: 1 s)\n"
        )


def test_reads_are_strongly_consistent(store: DynamoSeen) -> None:
    bodies: list[str] = []
    store._client.meta.events.register("before-call.dynamodb", lambda params, **_: bodies.append(str(params["body"])))
    lose_answers(store._client, "PutItem")
    assert store.claim(HANDLE, a_batch(1), LATER)
    assert store.batches(HANDLE) == [a_batch(1)]
    reads = [body for body in bodies if "ConditionExpression" not in body or "KeyConditionExpression" in body]
    assert len(reads) == 2
    assert all('"ConsistentRead": true' in body for body in reads)


def test_batch_that_no_item_can_hold_is_refused(store: DynamoSeen) -> None:
    with pytest.raises(Refused) as caught:
        store.claim(HANDLE, a_batch(1, shown=b"x" * 400_000), LATER)
    assert caught.value.code == "batch_too_large"
    assert store.batches(HANDLE) == []


def test_handle_is_in_no_request(store: DynamoSeen) -> None:
    sent: list[str] = []
    store._client.meta.events.register("before-call.dynamodb", lambda params, **_: sent.append(str(params)))
    assert store.claim(HANDLE, a_batch(1), LATER)
    assert store.batches(HANDLE) == [a_batch(1)]
    assert len(sent) == 2
    assert not [text for text in sent if HANDLE in text or b64encode(HANDLE.encode()).decode() in text]
