"""Whatever goes wrong, nobody reads without paying and nobody pays without reading."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from x402.mechanisms.evm.types import ExactEIP3009Authorization
from x402.mechanisms.evm.utils import create_nonce
from x402.schemas import PaymentRequirements

from engine.answer import Answer
from engine.requests import Request
from engine.sight import Caller
from handler.payment.results import RECEIPT
from tests.handler.payment.facilitator import NETWORK, FacilitatorServer
from tests.handler.payment.shop import Payer, connected, now, priced, required, selling, selling_settings
from tests.handler.small_app import SmallApp

pytestmark = pytest.mark.anyio

ELSEWHERE = "0x000000000000000000000000000000000000dEaD"
QUERY = {"query": "docker"}


@pytest.fixture(scope="module")
def small() -> SmallApp:
    return SmallApp()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def faulty(small: SmallApp, facilitator: FacilitatorServer, folder: Path) -> Iterator[int]:
    """The port of a server over a small application, whose calls can be counted."""
    with selling(small, selling_settings(folder, facilitator)) as number:
        yield number


@pytest.fixture(autouse=True)
def _quiet(small: SmallApp, facilitator: FacilitatorServer) -> Iterator[None]:
    small.calls.clear()
    small.answer = None
    yield
    facilitator.meddle = None


def answered(result: types.CallToolResult) -> bool:
    """Whether there is content, and with it a receipt."""
    assert result.is_error == (RECEIPT not in (result.meta or {}))
    return not result.is_error


def signed_for(payer: Payer, asked: PaymentRequirements, **fields: str) -> dict[str, Any]:
    """A payment whose authorization is signed over `fields`, and which claims to be what was asked."""
    seconds = now() // 1_000_000
    values = {
        "from_address": payer.address,
        "to": asked.pay_to,
        "value": asked.amount,
        "valid_after": "0",
        "valid_before": str(seconds + 60),
        "nonce": create_nonce(),
    }
    authorization = ExactEIP3009Authorization(**(values | fields))
    signature = payer.scheme._sign_authorization(authorization, asked)
    inner = {
        "signature": signature,
        "authorization": {
            "from": authorization.from_address,
            "to": authorization.to,
            "value": authorization.value,
            "validAfter": authorization.valid_after,
            "validBefore": authorization.valid_before,
            "nonce": authorization.nonce,
        },
    }
    accepted = asked.model_dump(by_alias=True, exclude_none=True)
    return {"x402Version": 2, "accepted": accepted, "payload": inner}


def _at(seconds: int) -> str:
    return str(now() // 1_000_000 + seconds)


Make = Callable[[Payer, PaymentRequirements], Any]

OFF: dict[str, tuple[Make, str]] = {
    "wrong amount signed": (lambda p, a: signed_for(p, a, value="1"), "the payment is of another amount"),
    "more than asked": (lambda p, a: signed_for(p, a, value="2001"), "the payment is of another amount"),
    "wrong amount": (
        lambda p, a: p.signed(a.model_copy(update={"amount": "1"})),
        "the payment is of another amount",
    ),
    "wrong recipient signed": (lambda p, a: signed_for(p, a, to=ELSEWHERE), "the payment goes to another address"),
    "wrong recipient": (
        lambda p, a: p.signed(a.model_copy(update={"pay_to": ELSEWHERE})),
        "the payment goes to another address",
    ),
    "wrong network": (
        lambda p, a: p.signed(a, network="eip155:8453"),
        f"the payment is not by exact on {NETWORK}",
    ),
    "another chain signed for": (
        lambda p, a: p.signed(a.model_copy(update={"network": "eip155:8453"}), network=NETWORK),
        "the payment was refused: invalid_exact_evm_payload_signature",
    ),
    "wrong asset": (lambda p, a: p.signed(a, asset=ELSEWHERE), "the payment is in another asset"),
    "another asset signed for": (
        lambda p, a: p.signed(a.model_copy(update={"asset": ELSEWHERE}), asset=a.asset),
        "the payment was refused: invalid_exact_evm_payload_signature",
    ),
    "expired": (lambda p, a: signed_for(p, a, valid_before=_at(-1)), "the payment is expired"),
    "not valid yet": (
        lambda p, a: signed_for(p, a, valid_after=_at(60), valid_before=_at(120)),
        "the payment is not valid yet",
    ),
    "valid for ever": (
        lambda p, a: signed_for(p, a, valid_before=_at(86_400)),
        "the payment is valid for more than 120 seconds",
    ),
    "of version 1": (lambda p, a: p.signed(a) | {"x402Version": 1}, "the payment is not one of x402 version 2"),
    "a word": (lambda _p, _a: "please", "the payment is not one of x402 version 2"),
    "unsigned": (
        lambda p, a: signed_for(p, a) | {"payload": {"authorization": {}}},
        "the payment holds no signed authorization (EIP-3009)",
    ),
}


@pytest.mark.parametrize("case", OFF)
async def test_a_payment_that_is_off_buys_nothing_and_costs_nothing(
    faulty: int, small: SmallApp, facilitator: FacilitatorServer, case: str
) -> None:
    payer = Payer(facilitator)
    make, why = OFF[case]
    async with connected(faulty) as shop:
        asked = await priced(shop, "search_messages", QUERY)
        told = required(await shop.call("search_messages", QUERY, make(payer, asked)))
    assert (told.error, told.accepts) == (why, [asked])
    assert (small.calls, payer.paid) == ([], [])


async def test_another_mans_money_buys_nothing(faulty: int, small: SmallApp, facilitator: FacilitatorServer) -> None:
    rich, thief = Payer(facilitator), Payer(facilitator, money=0)
    async with connected(faulty) as shop:
        asked = await priced(shop, "search_messages", QUERY)
        forged = await shop.call("search_messages", QUERY, signed_for(thief, asked, from_address=rich.address))
        broke = await shop.call("search_messages", QUERY, thief.signed(asked))
    assert required(forged).error == "the payment was refused: invalid_exact_evm_payload_signature"
    assert required(broke).error == "the payment was refused: invalid_exact_evm_insufficient_balance"
    assert (small.calls, rich.paid, thief.paid) == ([], [], [])


async def test_a_payment_buys_one_answer_and_no_other(
    faulty: int, small: SmallApp, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)
    async with connected(faulty) as shop:
        payment = payer.signed(await priced(shop, "search_messages", QUERY))
        assert answered(await shop.call("search_messages", QUERY, payment))
        asked_before = len(facilitator.asked)
        for again in (QUERY, {"query": "日本"}):
            told = required(await shop.call("search_messages", again, payment))
            assert told.error == "this payment has bought its answer; sign another"
        # Written otherwise it is still the same payment.
        inner = payment["payload"]["authorization"]
        inner["nonce"] = "0x" + inner["nonce"][2:].upper()
        inner["from"] = inner["from"].lower()
        assert required(await shop.call("search_messages", QUERY, payment)).error is not None
    assert (len(small.calls), payer.paid) == (1, [2_000])
    assert len(facilitator.asked) == asked_before


async def test_of_calls_at_once_with_one_payment_one_is_answered(
    faulty: int, small: SmallApp, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)
    results: list[types.CallToolResult] = []
    async with connected(faulty) as shop:
        payment = payer.signed(await priced(shop, "search_messages", QUERY))

        async def one() -> None:
            results.append(await shop.call("search_messages", QUERY, payment))

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one)
    assert [answered(result) for result in results].count(True) == 1
    assert (len(small.calls), payer.paid) == (1, [2_000])


async def test_while_the_facilitator_is_down_no_work_is_done(
    faulty: int, small: SmallApp, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)
    async with connected(faulty) as shop:
        payment = payer.signed(await priced(shop, "search_messages", QUERY))
        facilitator.stop()
        try:
            down = await shop.call("search_messages", QUERY, payment)
        finally:
            facilitator.start()
        assert not answered(down)
        assert text_of(down).startswith("payment_unavailable: payments cannot be checked now, and nothing was paid; ")
        assert (small.calls, payer.paid) == ([], [])
        assert answered(await shop.call("search_messages", QUERY, payment))
    assert payer.paid == [2_000]


async def test_a_facilitator_that_goes_down_before_it_settles_yields_neither_answer_nor_payment(
    faulty: int, small: SmallApp, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)

    def go(request: Request, _: Caller) -> Answer:
        facilitator.stop()
        return Answer("a secret", {"found": repr(request)})

    small.answer = go
    async with connected(faulty) as shop:
        payment = payer.signed(await priced(shop, "search_messages", QUERY))
        try:
            down = await shop.call("search_messages", QUERY, payment)
        finally:
            facilitator.start()
        told = required(down)
        assert told.error == "the payment was not settled: the facilitator is out of reach"
        assert failure_of(down) == "settlement_unsent"
        assert "secret" not in str(down)
        assert payer.paid == []
        small.answer = None
        assert answered(await shop.call("search_messages", QUERY, payment))
    assert payer.paid == [2_000]


GARBAGE = {
    "no JSON": (200, b"<html>gateway</html>"),
    "another object": (200, b'{"ok":true}'),
    "a list": (200, b"[]"),
    "a fault": (500, b"boom"),
    "a redirect": (307, b""),
}


@pytest.mark.parametrize("case", GARBAGE)
async def test_garbage_in_place_of_a_check_buys_nothing(
    faulty: int, small: SmallApp, facilitator: FacilitatorServer, case: str
) -> None:
    payer = Payer(facilitator)
    facilitator.meddle = lambda _question, _truly: GARBAGE[case]
    async with connected(faulty) as shop:
        payment = payer.signed(await priced(shop, "search_messages", QUERY))
        told = await shop.call("search_messages", QUERY, payment)
    assert text_of(told).startswith("payment_unavailable: ")
    assert (answered(told), small.calls, payer.paid) == (False, [], [])


@pytest.mark.parametrize("moved", [True, False])
@pytest.mark.parametrize("case", ["no JSON", "a fault"])
async def test_garbage_in_place_of_a_settlement_is_asked_again_with_the_same_payment(
    faulty: int, facilitator: FacilitatorServer, case: str, *, moved: bool
) -> None:
    payer = Payer(facilitator)

    def meddle(question: str, truly: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
        if question == "verify":
            return truly()
        if moved:
            truly()
        return GARBAGE[case]

    facilitator.meddle = meddle
    async with connected(faulty) as shop:
        payment = payer.signed(await priced(shop, "search_messages", QUERY))
        lost = await shop.call("search_messages", QUERY, payment)
        assert required(lost).error == (
            "it is not known whether the payment went through: send the same one with the same call again"
        )
        assert failure_of(lost) == "settlement_unknown"
        assert payer.paid == ([2_000] if moved else [])
        facilitator.meddle = None
        # Not for another call, and not twice.
        other = required(await shop.call("search_messages", {"query": "日本"}, payment))
        assert other.error == "this payment was meant for another call; repeat that one"
        assert answered(await shop.call("search_messages", QUERY, payment))
        assert not answered(await shop.call("search_messages", QUERY, payment))
    assert payer.paid == [2_000]


async def test_a_settlement_that_is_refused_gives_no_answer(
    faulty: int, small: SmallApp, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)

    def spend(request: Request, _: Caller) -> Answer:
        facilitator.ledger.balances[payer.address.lower()] = 0
        return Answer("a secret", {"found": repr(request)})

    small.answer = spend
    async with connected(faulty) as shop:
        payment = payer.signed(await priced(shop, "search_messages", QUERY))
        told = await shop.call("search_messages", QUERY, payment)
    assert required(told).error == "the payment was not settled: invalid_exact_evm_insufficient_balance"
    assert failure_of(told) == "invalid_exact_evm_insufficient_balance"
    assert "secret" not in str(told)
    assert payer.paid == []


async def test_a_payment_that_is_withdrawn_while_the_call_works_gives_no_answer_ever(
    faulty: int, small: SmallApp, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)
    async with connected(faulty) as shop:
        payment = payer.signed(await priced(shop, "search_messages", QUERY))

        def cancel(request: Request, _: Caller) -> Answer:
            nonce = bytes.fromhex(payment["payload"]["authorization"]["nonce"][2:])
            facilitator.ledger.used.add((payer.address.lower(), nonce))
            return Answer("a secret", {"found": repr(request)})

        small.answer = cancel
        for _ in range(2):
            told = await shop.call("search_messages", QUERY, payment)
            assert not answered(told)
            assert "secret" not in str(told)
    assert payer.paid == []


async def test_a_slow_check_is_not_waited_for(small: SmallApp, facilitator: FacilitatorServer, tmp_path: Path) -> None:
    payer = Payer(facilitator)
    with (
        selling(small, selling_settings(tmp_path, facilitator, verify_seconds=0.2)) as port,
        late(facilitator, "verify"),
    ):
        async with connected(port) as shop:
            payment = payer.signed(await priced(shop, "search_messages", QUERY))
            told = await shop.call("search_messages", QUERY, payment)
    assert text_of(told).startswith("payment_unavailable: ")
    assert (small.calls, payer.paid) == ([], [])


async def test_a_slow_settlement_is_not_waited_for_and_its_answer_can_be_fetched(
    small: SmallApp, faulty: int, facilitator: FacilitatorServer, folder: Path
) -> None:
    payer = Payer(facilitator)
    hurried = selling_settings(folder, facilitator, settle_seconds=0.2)
    with selling(small, hurried) as port, late(facilitator, "settle"):
        async with connected(port) as shop:
            payment = payer.signed(await priced(shop, "search_messages", QUERY))
            told = await shop.call("search_messages", QUERY, payment)
    assert failure_of(told) == "settlement_unknown"
    assert payer.paid == [2_000]
    async with connected(faulty) as shop:
        assert answered(await shop.call("search_messages", QUERY, payment))
    assert payer.paid == [2_000]


async def test_nothing_of_a_payment_stands_in_a_log(
    faulty: int, facilitator: FacilitatorServer, caplog: pytest.LogCaptureFixture
) -> None:
    payer = Payer(facilitator)
    with caplog.at_level(logging.DEBUG):
        async with connected(faulty) as shop:
            asked = await priced(shop, "search_messages", QUERY)
            payment = payer.signed(asked)
            assert answered(await shop.call("search_messages", QUERY, payment))
            facilitator.meddle = lambda _question, _truly: (500, json.dumps(payment).encode())
            assert not answered(await shop.call("search_messages", QUERY, payer.signed(asked)))
    # The payer's own side may say what it likes; the facilitator's stands beside ours only here.
    theirs = ("mcp.client", "x402.signers", "x402.mechanisms")
    said = "\n".join(record.getMessage() for record in caplog.records if not record.name.startswith(theirs)).lower()
    assert "payment_unavailable: verify: valueerror" in said
    inner = payment["payload"]
    for secret in (inner["signature"], inner["authorization"]["nonce"], payer.key, payer.address.lower()):
        assert secret.removeprefix("0x").lower() not in said


def text_of(result: types.CallToolResult) -> str:
    first = result.content[0]
    assert isinstance(first, types.TextContent)
    return first.text


def failure_of(result: types.CallToolResult) -> str:
    """The reason in the failed settlement that an error tells of."""
    assert result.structured_content is not None
    told: dict[str, Any] = result.structured_content[RECEIPT]
    assert told["success"] is False
    return str(told["errorReason"])


@contextmanager
def late(facilitator: FacilitatorServer, slow: str) -> Iterator[None]:
    """Within the block one question is answered, truly, and the answer comes when the block ends."""
    ended = threading.Event()

    def meddle(question: str, truly: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
        told = truly()
        if question == slow:
            ended.wait(30)
        return told

    facilitator.meddle = meddle
    try:
        yield
    finally:
        ended.set()
