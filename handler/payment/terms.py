"""What is asked for a call: one transfer of an exact amount of one token to one address, signed by EIP-3009.

Decides how a price becomes a requirement of x402. Must never know who pays, nor a tool's answer.

Source: x402 version 2, scheme `exact`, and EIP-3009 (transferWithAuthorization).
"""

from dataclasses import dataclass

from x402.schemas import PaymentRequirements

__all__ = ["SCHEME", "Terms"]

SCHEME = "exact"
_MICRO_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Terms:
    """`asset` and `pay_to` are addresses, `name` and `version` the token's own as they are signed over.

    A payment is valid for at most `timeout_seconds`.
    """

    network: str
    asset: str
    name: str
    version: str
    decimals: int
    pay_to: str
    timeout_seconds: int

    def amount(self, micros: int) -> int:
        """A price in micro-dollars, in the token's smallest unit."""
        scale: int = 10 ** (self.decimals - _MICRO_DECIMALS)
        return micros * scale

    def requirement(self, amount: int) -> PaymentRequirements:
        """What a payment of `amount` must be."""
        return PaymentRequirements(
            scheme=SCHEME,
            network=self.network,
            asset=self.asset,
            amount=str(amount),
            pay_to=self.pay_to,
            max_timeout_seconds=self.timeout_seconds,
            extra={"name": self.name, "version": self.version},
        )
