"""Pay per call without an account, by x402: what is asked for, by whom it is checked, and how long anything may take.

Decides what of these may be set and to what. Must never know a price (`handler.settings_money`) nor a payment.
"""

from handler.settings_base import Section, setting

__all__ = ["X402Settings"]

_ADDRESS = r"^(0x[0-9a-fA-F]{40})?$"


class X402Settings(Section):
    """Callers without an account pay for each call by x402. Needs `[prices]` and a policy. See docs/payment.md."""

    enabled: bool = setting(
        False, "Answer callers who pay for each call.", "Off: a corpus is for those its owner knows."
    )
    beside_auth: bool = setting(
        False,
        "With other `auth.modes` than none: a call without a credential may pay instead.",
        "Off: OAuth clients sign in only when they are turned away.",
    )
    network: str = setting(
        "", "Chain of the payments: `eip155:8453` is Base, `eip155:84532` its test network.", pattern=r"^(eip155:\d+)?$"
    )
    asset: str = setting(
        "", "Address of the token paid with, one with EIP-3009 and worth a US dollar.", pattern=_ADDRESS
    )
    asset_name: str = setting(
        "USD Coin",
        "The token's own name, as its EIP-712 domain has it.",
        "It is part of what is signed.",
        min_length=1,
        max_length=40,
    )
    asset_version: str = setting("2", "The token's version, likewise.", min_length=1, max_length=10)
    asset_decimals: int = setting(
        6, "The token's decimals.", "With 6 its unit is the micro-dollar of the prices.", ge=6, le=18
    )
    pay_to: str = setting(
        "",
        "Address that is paid. Give each deployment its own.",
        "A payment to an address that two deployments share could be shown to both.",
        pattern=_ADDRESS,
    )
    facilitator: str = setting(
        "", "Address of the facilitator, which checks payments and settles them.", "Only https, or loopback."
    )
    facilitator_authorization: str = setting(
        "", "Value of the Authorization header for the facilitator, if it wants one.", "A secret: set it as a variable."
    )
    verify_seconds: float = setting(
        4.0, "The facilitator's time to check a payment.", "No work is done before.", gt=0, le=20
    )
    settle_seconds: float = setting(
        10.0, "The facilitator's time to settle a payment.", "A transaction takes some blocks.", gt=0, le=60
    )
    call_seconds: float = setting(
        28.0,
        "A call's whole time: what could not be settled within it is not settled, and not answered.",
        "HTTP APIs hang up after 30 s: what is settled later is paid for and not read.",
        gt=0,
        le=120,
    )
    timeout_seconds: int = setting(
        120,
        "How long a payment may be valid.",
        "Long enough for a slow client, short enough to remember each.",
        ge=30,
        le=3_600,
    )
    export_rows: int = setting(
        1_000,
        "Exports are sold by so many rows, begun ones whole.",
        "An exact price would tell the exact count, which is sold too.",
        ge=1,
        le=1_000_000,
    )
