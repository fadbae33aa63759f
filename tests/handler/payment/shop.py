"""A server that sells, its payers, and the package's own client between them."""

import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mcp_types as types
import uvicorn
from eth_account import Account
from mcp import Client
from x402 import x402Client
from x402.mcp.client_async import x402MCPClient
from x402.mechanisms.evm.exact import ExactEvmClientScheme
from x402.mechanisms.evm.signers import EthAccountSigner
from x402.schemas import PaymentPayload, PaymentRequired, PaymentRequirements

from handler.app import App
from handler.auth.gate import caller_of, with_gate
from handler.http import HttpOptions, build_http
from handler.metering.prices import prices_of
from handler.payment.results import PAYMENT, RECEIPT
from handler.settings import Settings
from handler.settings_money import PriceSettings
from handler.settings_table import CorpusSettings, PolicySettings, X402Settings
from handler.wiring import build_desk, build_gate
from tests.handler.payment.facilitator import ASSET, NETWORK, FacilitatorServer

__all__ = ["PAY_TO", "PRICES", "Payer", "connected", "now", "priced", "required", "selling", "selling_settings"]

PAY_TO = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"

PRICES = PriceSettings(
    count_messages=1_000,
    search_messages=2_000,
    unseen_messages=2_000,
    open_thread=3_000,
    export_messages=5_000,
    export_row=10,
)


def now() -> int:
    """The package signs by the machine's clock, so the server under test has the same."""
    return time.time_ns() // 1_000


def selling_settings(folder: Path, facilitator: FacilitatorServer, **changes: Any) -> Settings:
    """Settings of a server without accounts, whose payers see `support` only."""
    own: dict[str, Any] = {
        "enabled": True,
        "network": NETWORK,
        "asset": ASSET,
        "asset_name": "USDC",
        "pay_to": PAY_TO,
        "facilitator": facilitator.url,
        "verify_seconds": 20,
        "settle_seconds": 20,
        "call_seconds": 120,
    }
    return Settings(
        corpus=CorpusSettings(root=str(folder / "corpus")),
        prices=PRICES,
        policies=(PolicySettings(callers=("x402:*",), allow=("support",)),),
        x402=X402Settings(**(own | changes)),
    )


@contextmanager
def selling(app: App, settings: Settings) -> Iterator[int]:
    """The port of a server over `app` that sells as the settings say, until the block ends."""
    gate = build_gate(settings, now, "http://127.0.0.1")
    assert gate is not None
    options = HttpOptions(desk=build_desk(settings, now), prices=prices_of(settings.prices))
    served = with_gate(build_http(app, options, caller_of=caller_of), gate)
    server = uvicorn.Server(uvicorn.Config(served, port=0, log_level="error", lifespan="on", ws="none"))
    socket = server.config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        # The socket listens from here on, so a request waits in its queue until the loop takes it.
        socket.listen()
        yield socket.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        socket.close()


class Payer:
    """An account with money in it, and the package's client for it."""

    def __init__(self, facilitator: FacilitatorServer, money: int = 1_000_000) -> None:
        account = Account.create()
        self.address: str = account.address
        self.key = account.key.hex()
        self.name = f"x402:{account.address.lower()}"
        self._ledger = facilitator.ledger
        self._ledger.balances[account.address.lower()] = money
        self.scheme = ExactEvmClientScheme(EthAccountSigner(account))
        self.client = x402Client()
        self.client.register(NETWORK, self.scheme)

    @property
    def paid(self) -> list[int]:
        """Amounts that left the account, in order."""
        return self._ledger.paid_by(self.address)

    def signed(self, asked: PaymentRequirements, **accepted: Any) -> dict[str, Any]:
        """A payment of what is asked, which says of itself what `accepted` changes."""
        told = asked.model_copy(update=accepted)
        payload = PaymentPayload(payload=self.scheme.create_payment_payload(asked), accepted=told)
        return payload.model_dump(by_alias=True, exclude_none=True)


@dataclass(frozen=True)
class Connected:
    """An MCP client, plain or with a payment attached."""

    client: Client

    async def call(self, tool: str, arguments: dict[str, Any], payment: Any = None) -> types.CallToolResult:
        meta: Any = None if payment is None else {PAYMENT: payment}
        return await self.client.call_tool(tool, arguments, meta=meta)

    def paying(self, payer: Payer) -> x402MCPClient:
        """The package's client, which pays for what is asked for money."""
        return x402MCPClient(_Shaped(self.client), payer.client)


class _Shaped:
    """A client of MCP 2.x, shaped like the one that the package knows."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call_tool(self, params: dict[str, Any], **_: Any) -> SimpleNamespace:
        result = await self._client.call_tool(params["name"], params["arguments"], meta=params.get("_meta"))
        told = result.model_dump(by_alias=True, exclude_none=True)
        told.setdefault("structuredContent", None)
        return SimpleNamespace(**told)


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connected]:
    async with Client(f"http://127.0.0.1:{port}/mcp") as client:
        yield Connected(client)


def required(result: types.CallToolResult) -> PaymentRequired:
    """What a result asks for, which it must do in both places alike and without any content."""
    assert result.is_error
    (text,) = result.content
    assert isinstance(text, types.TextContent)
    assert json.loads(text.text) == result.structured_content
    assert RECEIPT not in (result.meta or {})
    return PaymentRequired.model_validate(result.structured_content)


async def priced(shop: Connected, tool: str, arguments: dict[str, Any]) -> PaymentRequirements:
    """What a call costs, as the server says."""
    (asked,) = required(await shop.call(tool, arguments)).accepts
    return asked
