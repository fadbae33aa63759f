"""A facilitator on loopback: the package's own checks of signatures, amounts and times, over a ledger in memory that
stands for the chain.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from x402 import x402FacilitatorSync
from x402.mechanisms.evm.exact import ExactEvmFacilitatorScheme
from x402.mechanisms.evm.types import TransactionReceipt
from x402.schemas import PaymentPayload, PaymentRequirements

__all__ = ["ASSET", "NETWORK", "FacilitatorServer", "Ledger", "facilitating"]

NETWORK = "eip155:84532"
ASSET = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
_ITSELF = "0x00000000000000000000000000000000000000fA"


@dataclass
class Ledger:
    """A token with EIP-3009: balances by address in lower case, transfers, and nonces that were used."""

    balances: dict[str, int] = field(default_factory=dict)
    transfers: list[tuple[str, str, int]] = field(default_factory=list)
    used: set[tuple[str, bytes]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def paid_by(self, payer: str) -> list[int]:
        """Amounts that went from an address, in order."""
        return [value for sender, _, value in self.transfers if sender == payer.lower()]

    def get_addresses(self) -> list[str]:
        return [_ITSELF]

    def get_code(self, address: str) -> bytes:
        """The token is a contract; payers are not."""
        return b"\x01" if address.lower() == ASSET.lower() else b""

    def read_contract(self, address: str, abi: list[dict[str, Any]], function_name: str, *args: Any) -> Any:
        """A simulated transfer."""
        assert (address.lower(), function_name) == (ASSET.lower(), "transferWithAuthorization"), abi
        with self.lock:
            self._check(*args)

    def write_contract(
        self, address: str, abi: list[dict[str, Any]], function_name: str, *args: Any, data_suffix: str | None = None
    ) -> str:
        """The transfer; gives the hash of its transaction."""
        assert (address.lower(), function_name, data_suffix) == (ASSET.lower(), "transferWithAuthorization", None), abi
        with self.lock:
            self._check(*args)
            sender, receiver, value, nonce = args[0].lower(), args[1].lower(), args[2], args[5]
            self.used.add((sender, nonce))
            self.balances[sender] -= value
            self.transfers.append((sender, receiver, value))
            return f"0x{len(self.transfers):064x}"

    def wait_for_transaction_receipt(self, tx_hash: str) -> TransactionReceipt:
        return TransactionReceipt(status=1, block_number=1, tx_hash=tx_hash)

    def _check(self, sender: str, receiver: str, value: int, after: int, before: int, nonce: bytes, *_: Any) -> None:
        assert receiver
        assert after < before
        if (sender.lower(), nonce) in self.used:
            raise RuntimeError("execution reverted: FiatTokenV2: authorization is used or canceled")
        if self.balances.get(sender.lower(), 0) < value:
            raise RuntimeError("execution reverted: ERC20: transfer amount exceeds balance")


Answered = tuple[int, bytes]
Meddle = Callable[[str, Callable[[], Answered]], Answered]
"""Given a question (`verify`, `settle`) and what answers it truly, gives the answer that is sent."""


class FacilitatorServer:
    """`meddle` stands between a question and its answer; `asked` are the questions that came."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.asked: list[str] = []
        self.headers: list[str | None] = []
        self.meddle: Meddle | None = None
        self._facilitator = x402FacilitatorSync()
        self._facilitator.register([NETWORK], ExactEvmFacilitatorScheme(self.ledger))  # type: ignore[arg-type]  # what it uses of a signer
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, on the same port as before."""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                question = self.path.removeprefix("/")
                owner.asked.append(question)
                owner.headers.append(self.headers["authorization"])

                def truly() -> Answered:
                    return owner.answer(question, body)

                status, raw = owner.meddle(question, truly) if owner.meddle is not None else truly()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        """Listen no more: connections are refused."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.socket.close()
            self._server = self._thread = None

    def answer(self, question: str, body: dict[str, Any]) -> Answered:
        """What the package's facilitator says."""
        assert body["x402Version"] == 2
        payload = PaymentPayload.model_validate(body["paymentPayload"])
        requirements = PaymentRequirements.model_validate(body["paymentRequirements"])
        ask = {"verify": self._facilitator.verify, "settle": self._facilitator.settle}[question]
        told: Any = ask(payload, requirements)
        return 200, told.model_dump_json(by_alias=True, exclude_none=True).encode()


@contextmanager
def facilitating() -> Iterator[FacilitatorServer]:
    """A facilitator until the block ends."""
    made = FacilitatorServer()
    made.start()
    try:
        yield made
    finally:
        made.stop()
