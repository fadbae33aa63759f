"""The facilitator, as far as it can be relied on: what it says counts when it says it in time and makes sense.

Decides how long it is waited for, and what is known after it failed: before a settlement was sent nothing was paid;
after, nobody knows. Requests and answers are the x402 package's own. Must never know a tool, nor log a payment.
"""

import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import anyio
import httpx2
from x402.http.facilitator_client import AuthHeaders, FacilitatorConfig, HTTPFacilitatorClient
from x402.interfaces import PaymentFlowConfig
from x402.schemas import (
    AssetAmount,
    PaymentPayload,
    PaymentRequirements,
    SettleResponse,
    SupportedKind,
    SupportedResponse,
    VerifyResponse,
)
from x402.server import x402ResourceServer

from engine.errors import Unavailable
from handler.payment.offer import Declined, Offer
from handler.payment.terms import SCHEME

__all__ = ["Counter", "Facilitator", "Settled", "Waits"]

_REASON = re.compile(r"[a-z0-9_]{1,80}")
_TRANSACTION = re.compile(r"[0-9A-Za-z_:-]{1,128}")
_PENDING = "settlement_pending"


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds for each of the two questions, connecting and all tries included."""

    verify: float
    settle: float


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a settlement.

    `paid`: the money moved, by `transaction`. `refused`: it did not and will not. `unsent`: nobody was asked.
    `unknown`: it may have. `reason` is the facilitator's word for a refusal.
    """

    outcome: Literal["paid", "refused", "unsent", "unknown"]
    transaction: str = ""
    reason: str = ""

    @property
    def spent_before(self) -> bool:
        """Whether it was refused because the payment has gone through already."""
        return self.outcome == "refused" and "nonce" in self.reason and "used" in self.reason


class Facilitator:
    """The facilitator at `url`. `authorization` is the header it wants, if any. Opens no socket before it is asked."""

    def __init__(self, url: str, network: str, waits: Waits, *, authorization: str = "") -> None:
        self._url = url
        self._network = network
        self._waits = waits
        self._authorization = authorization
        # Reading the authorities takes longer than a request; redirects are not followed, so one address suffices.
        self._tls = ssl.create_default_context()

    @asynccontextmanager
    async def counter(self) -> AsyncIterator["Counter"]:
        """Where one payment is dealt with, over connections of its own: a frozen container keeps none alive."""
        longest = max(self._waits.verify, self._waits.settle)
        async with httpx2.AsyncClient(verify=self._tls, timeout=longest, follow_redirects=False) as http:
            provider = _Header(self._authorization) if self._authorization else None
            client = HTTPFacilitatorClient(
                FacilitatorConfig(self._url, timeout=longest, http_client=http, auth_provider=provider)
            )
            server = x402ResourceServer(_Known(client, self._network))
            server.register(self._network, _Exact())
            server.initialize()
            yield Counter(server, self._waits)


class Counter:
    """One payment's questions to the facilitator."""

    def __init__(self, server: x402ResourceServer, waits: Waits) -> None:
        self._server = server
        self._waits = waits

    async def verify(self, offer: Offer, requirement: PaymentRequirements) -> None:
        """Return when the payment would go through now.

        Raises:
            Declined: it would not, with the facilitator's word for why.
            Unavailable: `payment_unavailable` when the facilitator does not say.
        """
        try:
            with anyio.fail_after(self._waits.verify):
                told = await self._server.verify_payment(offer.payload(requirement), requirement)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the payment is not checked
            raise Unavailable(
                "payment_unavailable",
                "payments cannot be checked now, and nothing was paid",
                next_step="call again later, with the same payment while it is valid",
                detail=f"verify: {type(error).__name__}",
            ) from None
        if not told.is_valid:
            raise Declined(f"the payment was refused: {_reason(told.invalid_reason)}")
        if told.payer is not None and told.payer.lower() != offer.payer:
            raise Declined("the payment was refused: payer_mismatch")

    async def settle(self, offer: Offer, requirement: PaymentRequirements) -> Settled:
        """Have the money moved. Never raises but when it is cancelled."""
        try:
            with anyio.fail_after(self._waits.settle):
                told = await self._server.settle_payment(offer.payload(requirement), requirement)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            return Settled("unsent")
        except Exception:  # noqa: BLE001 - whatever went wrong, the money may have moved
            return Settled("unknown")
        if told.success:
            ours = told.network == requirement.network and (told.payer is None or told.payer.lower() == offer.payer)
            if not ours:
                return Settled("unknown")
            return Settled("paid", told.transaction if _TRANSACTION.fullmatch(told.transaction) else "")
        reason = _reason(told.error_reason)
        return Settled("unknown" if reason == _PENDING else "refused", reason=reason)


def _reason(given: str | None) -> str:
    """A facilitator's word as far as it is one: it goes into an error that a model reads."""
    return given if given is not None and _REASON.fullmatch(given) else "no_reason_given"


class _Header:
    """The facilitator's `Authorization`, in the package's way."""

    def __init__(self, authorization: str) -> None:
        headers = {"Authorization": authorization}
        self._headers = AuthHeaders(verify=headers, settle=headers)

    def get_auth_headers(self) -> AuthHeaders:
        return self._headers


class _Known:
    """A facilitator whose kinds are those of the settings: asking it at every start would open a socket."""

    def __init__(self, client: HTTPFacilitatorClient, network: str) -> None:
        self._client = client
        self._network = network

    async def verify(self, payload: PaymentPayload, requirements: PaymentRequirements) -> VerifyResponse:
        return await self._client.verify(payload, requirements)

    async def settle(self, payload: PaymentPayload, requirements: PaymentRequirements) -> SettleResponse:
        return await self._client.settle(payload, requirements)

    def get_supported(self) -> SupportedResponse:
        return SupportedResponse(kinds=[SupportedKind(x402_version=2, scheme=SCHEME, network=self._network)])


class _Exact:
    """The scheme for the package's server. Its own version of this brings libraries of a chain along, 30 MB of them,
    to turn dollars into tokens and to look up a token's name: settings of ours.
    """

    scheme = SCHEME
    default_asset_transfer_method = "eip3009"
    payment_flows: Mapping[str, PaymentFlowConfig] = {
        "eip3009": {"supported": ("authorization",), "default": "authorization"}
    }

    def parse_price(self, price: Any, network: str) -> AssetAmount:
        raise NotImplementedError

    def enhance_payment_requirements(
        self,
        requirements: PaymentRequirements,
        supported_kind: SupportedKind,  # noqa: ARG002 - the package's signature
        extensions: list[str],  # noqa: ARG002 - likewise
    ) -> PaymentRequirements:
        return requirements
