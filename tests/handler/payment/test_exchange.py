"""The whole exchange, with the package's client and signatures, over HTTP."""

import json
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from handler.payment.results import RECEIPT
from tests.handler.payment.facilitator import ASSET, NETWORK, FacilitatorServer
from tests.handler.payment.shop import PAY_TO, Payer, connected, required

pytestmark = pytest.mark.anyio


def text_of(result: Any) -> str:
    first = result.content[0]
    return str(first["text"] if isinstance(first, dict) else first.text)


def head_of(text: str, name: str) -> str:
    """What stands after a word of the head, up to a blank."""
    return text.partition(f"{name} ")[2].split()[0]


async def test_a_call_without_payment_is_told_what_to_pay_and_nothing_else(
    port: int, facilitator: FacilitatorServer
) -> None:
    asked_before = len(facilitator.asked)
    async with connected(port) as shop:
        told = await shop.call("search_messages", {"query": "docker"})
    assert told.structured_content == {
        "x402Version": 2,
        "error": "search_messages is paid for by call",
        "resource": {
            "url": "mcp://tool/search_messages",
            "description": "Search messages and read a few excerpts",
            "mimeType": "text/plain",
        },
        "accepts": [
            {
                "scheme": "exact",
                "network": NETWORK,
                "asset": ASSET,
                "amount": "2000",
                "payTo": PAY_TO,
                "maxTimeoutSeconds": 120,
                "extra": {"name": "USDC", "version": "2"},
            }
        ],
    }
    assert required(told).x402_version == 2
    assert len(facilitator.asked) == asked_before


async def test_a_payer_reads_with_all_five_tools_and_pays_what_each_costs(
    port: int, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)
    async with connected(port) as shop:
        client = shop.paying(payer)
        counted = await client.call_tool("count_messages", {"query": "docker"})
        searched = await client.call_tool("search_messages", {"query": "docker", "limit": 2})
        session = head_of(text_of(searched), "session")
        further = await client.call_tool("unseen_messages", {"query": "docker", "limit": 2, "session": session})
        message = text_of(searched).partition("\n[")[2].partition("]")[0]
        opened = await client.call_tool("open_thread", {"message": [message], "session": session})
        exported = await client.call_tool("export_messages", {"query": "docker"})
    results = (counted, searched, further, opened, exported)
    assert [(r.is_error, r.payment_made) for r in results] == [(False, True)] * 5
    # The policy of those who pay shows them one of two conversations.
    assert "found: 80 messages" in text_of(counted)
    assert "shown 2, left out 76" in text_of(further)
    assert text_of(opened).count("⟦") == 0
    assert "exported: 80 rows" in text_of(exported)
    # An export is sold by begun thousands of rows.
    assert payer.paid == [1_000, 2_000, 2_000, 3_000, 5_000 + 1_000 * 10]
    receipts = [r.payment_response for r in results if r.payment_response is not None]
    assert [(r.success, r.network, r.payer, r.amount) for r in receipts] == [
        (True, NETWORK, payer.address.lower(), str(paid)) for paid in payer.paid
    ]
    assert len({r.transaction for r in receipts}) == 5
    assert {(to, asked) for sender, to, _ in facilitator.ledger.transfers for asked in [sender]} >= {
        (PAY_TO.lower(), payer.address.lower())
    }


async def test_a_session_belongs_to_the_address_that_paid(port: int, facilitator: FacilitatorServer) -> None:
    payer, other = Payer(facilitator), Payer(facilitator)
    async with connected(port) as shop:
        searched = await shop.paying(payer).call_tool("search_messages", {"query": "docker", "limit": 1})
        session = head_of(text_of(searched), "session")
        again = {"query": "docker", "limit": 1, "session": session}
        refused = await shop.paying(other).call_tool("unseen_messages", again)
        answered = await shop.paying(payer).call_tool("unseen_messages", again)
    assert text_of(refused).startswith("unknown_session: ")
    assert not answered.is_error
    # An error costs nothing.
    assert (payer.paid, other.paid) == ([2_000, 2_000], [])


async def test_an_error_of_the_search_costs_nothing_and_leaves_the_payment_its_use(
    port: int, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)
    async with connected(port) as shop:
        (asked,) = required(await shop.call("count_messages", {})).accepts
        payment = payer.signed(asked)
        wrong = await shop.call("count_messages", {"author": ["Юрик"]}, payment)
        assert text_of(wrong).startswith("unknown_value: ")
        assert payer.paid == []
        right = await shop.call("count_messages", {"author": ["Юрий"]}, payment)
    assert (right.is_error, payer.paid) == (False, [1_000])


async def test_arguments_that_cannot_be_meant_are_told_before_anything_is_paid(port: int) -> None:
    async with connected(port) as shop:
        told = await shop.call("count_messages", {"role": "client"})
    assert text_of(told).startswith("unknown_parameter: count_messages has no parameter 'role'")
    assert told.structured_content is None


async def test_an_empty_result_is_paid_for(port: int, facilitator: FacilitatorServer) -> None:
    payer = Payer(facilitator)
    async with connected(port) as shop:
        found = await shop.paying(payer).call_tool("search_messages", {"query": "nowhere-at-all"})
    assert "found: 0 messages" in text_of(found)
    assert payer.paid == [2_000]


async def test_a_repeat_is_free_for_whoever_paid_for_the_batch_and_for_nobody_else(
    port: int, facilitator: FacilitatorServer
) -> None:
    payer = Payer(facilitator)
    async with connected(port) as shop:
        client = shop.paying(payer)
        first = await client.call_tool("search_messages", {"query": "docker", "limit": 2})
        asked = {"query": "docker", "limit": 3, "session": head_of(text_of(first), "session")}
        page = await client.call_tool("unseen_messages", asked)
        repeated = await client.call_tool("unseen_messages", asked | {"after_batch": 1})
    assert "repeated" in text_of(repeated)
    assert text_of(repeated).partition("\n[")[2] == text_of(page).partition("\n[")[2]
    assert repeated.payment_response is None
    assert payer.paid == [2_000, 2_000]


async def test_a_repeat_of_a_batch_that_was_not_settled_is_paid_for(port: int, facilitator: FacilitatorServer) -> None:
    payer = Payer(facilitator)
    async with connected(port) as shop:
        client = shop.paying(payer)
        first = await client.call_tool("search_messages", {"query": "docker", "limit": 2})
        asked = {"query": "docker", "limit": 3, "session": head_of(text_of(first), "session")}
        facilitator.meddle = lambda question, truly: (
            (
                200,
                json.dumps({"success": False, "errorReason": "no_gas", "transaction": "", "network": NETWORK}).encode(),
            )
            if question == "settle"
            else truly()
        )
        try:
            refused = await client.call_tool("unseen_messages", asked)
        finally:
            facilitator.meddle = None
        assert "with after_batch=1 the next payment buys the same messages" in text_of(refused)
        assert payer.paid == [2_000]
        repeated = await client.call_tool("unseen_messages", asked | {"after_batch": 1})
        again = await client.call_tool("unseen_messages", asked | {"after_batch": 1})
    assert "repeated" in text_of(repeated)
    assert text_of(again) == text_of(repeated)
    assert payer.paid == [2_000, 2_000]


async def test_what_a_visitor_reads_without_paying_tells_nothing_of_the_corpus(port: int) -> None:
    async with Client(f"http://127.0.0.1:{port}/mcp") as client:
        tools = (await client.list_tools()).tools
        told = client.instructions or ""
        with pytest.raises(MCPError, match="payment_required"):
            await client.read_resource("hayfork://corpus")
    assert [tool.output_schema for tool in tools] == [None] * 5
    assert {tool.name: (tool.meta or {})["hayfork/price"]["usd_micros"] for tool in tools}["open_thread"] == 3_000
    assert "A call costs: count_messages $0.001, search_messages $0.002" in told
    for word in ("support", "общий", "Zara", "120", "2016"):
        assert word not in told


@pytest.mark.parametrize(
    ("filter_name", "value"),
    [("author", "Юрик"), ("conversation", "suport"), ("thread", "support:none"), ("kind", "fil")],
)
async def test_an_export_that_was_not_paid_for_told_names_and_ids_of_the_corpus(
    port: int, filter_name: str, value: str
) -> None:
    async with connected(port) as shop:
        told = await shop.call("export_messages", {filter_name: [value]})
    assert len(required(told).accepts) == 1
    for word in ("unknown_value", "Юрий", "Юрик", "support", "message"):
        assert word not in text_of(told).replace("export_messages", "")


async def test_a_receipt_stands_in_the_place_that_the_protocol_names(port: int, facilitator: FacilitatorServer) -> None:
    payer = Payer(facilitator)
    async with connected(port) as shop:
        (asked,) = required(await shop.call("count_messages", {})).accepts
        result = await shop.call("count_messages", {}, payer.signed(asked))
    assert result.meta is not None
    told = result.meta[RECEIPT]
    assert told | {"transaction": ""} == {
        "success": True,
        "transaction": "",
        "network": NETWORK,
        "payer": payer.address.lower(),
        "amount": "1000",
    }
