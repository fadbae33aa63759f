"""A payment as a client sends it: read, and held against what was asked for, before anybody is troubled with it.

Decides what a payment must look like, and by which id it is known again: token, payer and nonce, which the token lets
through once. Nothing that a client adds is passed on. Must never know a store, nor whether a signature is good.

Source: x402 version 2, `PaymentPayload` of the scheme `exact` on EVM chains; EIP-3009 for the fields signed over.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from x402.schemas import PaymentPayload, PaymentRequirements

from handler.payment.terms import Terms

__all__ = ["Declined", "Offer", "check_offer", "read_offer"]

_SLACK_SECONDS = 600
"""Clocks differ; a payment that stays valid for longer than this beyond what was asked must not be remembered."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NONCE = re.compile(r"0x[0-9a-fA-F]{64}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,77}")
_SIGNATURE = re.compile(r"0x(?:[0-9a-fA-F]{2}){65,2048}")
"""65 bytes of an account; the contract of a wallet may want more."""

_FIELDS: Mapping[str, re.Pattern[str]] = {
    "from": _ADDRESS,
    "to": _ADDRESS,
    "value": _NUMBER,
    "validAfter": _NUMBER,
    "validBefore": _NUMBER,
    "nonce": _NONCE,
}


class Declined(Exception):
    """A payment that buys nothing. `reason` is for the payer, who may make another."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Offer:
    """A payment that could be read.

    `payer` is the address in lower case; `payment_id` a digest that no other payment has, `proof` one of the signature;
    `accepted` is what the client says it agreed to. `valid_before` is in seconds since 1970.
    """

    payer: str
    payment_id: str
    proof: str
    authorization: Mapping[str, str]
    signature: str
    accepted: Mapping[str, Any]

    @property
    def valid_before(self) -> int:
        """When it stops being one, in seconds since 1970."""
        return int(self.authorization["validBefore"])

    @property
    def amount(self) -> int:
        """What it pays, in the token's smallest unit."""
        return int(self.authorization["value"])

    def payload(self, requirement: PaymentRequirements) -> PaymentPayload:
        """The same for the facilitator, made anew of what was read."""
        return PaymentPayload(
            payload={"signature": self.signature, "authorization": dict(self.authorization)}, accepted=requirement
        )


def read_offer(raw: Any, terms: Terms) -> Offer:
    """The payment in `raw`, which came as the request's `_meta["x402/payment"]`.

    Raises:
        Declined: it is not a payment of version 2 by EIP-3009.
    """
    if not isinstance(raw, dict) or raw.get("x402Version") != 2:
        raise Declined("the payment is not one of x402 version 2")
    accepted, inner = raw.get("accepted"), raw.get("payload")
    if not isinstance(accepted, dict) or not isinstance(inner, dict):
        raise Declined("the payment has no accepted or no payload")
    given, signature = inner.get("authorization"), inner.get("signature")
    if not isinstance(given, dict) or not isinstance(signature, str) or not _SIGNATURE.fullmatch(signature):
        raise Declined("the payment holds no signed authorization (EIP-3009)")
    authorization = {name: _field(given, name) for name in _FIELDS}
    payer = authorization["from"].lower()
    identity = "|".join((terms.network, terms.asset.lower(), payer, authorization["nonce"].lower()))
    return Offer(
        payer=payer,
        payment_id=f"payment:{sha256(identity.encode()).hexdigest()}",
        proof=sha256(f"{sorted(authorization.items())}{signature.lower()}".encode()).hexdigest(),
        authorization=authorization,
        signature=signature,
        accepted=accepted,
    )


def _field(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not _FIELDS[name].fullmatch(value):
        raise Declined(f"the payment's authorization has no valid {name}")
    return value


def check_offer(offer: Offer, requirement: PaymentRequirements, now: int) -> None:
    """Hold a payment against what is asked. `now` is in seconds since 1970.

    Raises:
        Declined: it is for something else, or not now.
    """
    accepted, authorization = offer.accepted, offer.authorization
    if accepted.get("scheme") != requirement.scheme or accepted.get("network") != requirement.network:
        raise Declined(f"the payment is not by {requirement.scheme} on {requirement.network}")
    if not _same(accepted.get("asset"), requirement.asset):
        raise Declined("the payment is in another asset")
    if not _same(accepted.get("payTo"), requirement.pay_to) or not _same(authorization["to"], requirement.pay_to):
        raise Declined("the payment goes to another address")
    if accepted.get("amount") != requirement.amount or authorization["value"] != requirement.amount:
        raise Declined("the payment is of another amount")
    if offer.valid_before <= now:
        raise Declined("the payment is expired")
    if int(authorization["validAfter"]) > now:
        raise Declined("the payment is not valid yet")
    if offer.valid_before > now + requirement.max_timeout_seconds + _SLACK_SECONDS:
        raise Declined(f"the payment is valid for more than {requirement.max_timeout_seconds} seconds")


def _same(given: Any, wanted: str) -> bool:
    """Addresses differ in case where one is written with its checksum."""
    return isinstance(given, str) and given.lower() == wanted.lower()
