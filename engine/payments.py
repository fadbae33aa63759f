"""Payments that were offered for a call, as they are kept so that each buys one answer at most.

Decides what is known of a payment, and what a store of them must do. Must never know a chain, a currency or a
signature: a payment is an id that nobody else can have, and a digest that tells one signing from another.

    held       a call works on it; when its lease is over the call has died, and nothing was asked of the payer
    settling   the money was asked for and no answer came; the same payment, for the same call, may ask again
    answered   it bought its answer, and buys no other
    owed       an export that a payer began, to be paid for when its link is given
"""

from dataclasses import dataclass
from typing import Literal, Protocol

__all__ = ["Payment", "PaymentState", "PaymentStore"]

PaymentState = Literal["held", "settling", "answered", "owed"]


@dataclass(frozen=True, slots=True)
class Payment:
    """What is kept of one payment. Times are microseconds since 1970, UTC.

    `version` is new with every write, and tells whoever wrote last. `call` is the digest of the tool and its arguments,
    `proof` that of the signature. `batch` is what the answer showed in a session, 0 for nothing; `amount` is what is
    owed, in the asset's smallest unit.
    """

    payment_id: str
    version: str
    state: PaymentState
    payer: str
    call: str
    proof: str
    lease_until: int
    expires_at: int
    batch: int = 0
    amount: int = 0


class PaymentStore(Protocol):
    """Payments by their ids. Each change is one conditional write: of two that want the same, one is told no."""

    def get(self, payment_id: str) -> Payment | None:
        """A payment as it is now, strongly consistent; `None` when there is none or its time is over.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    def put(self, payment: Payment, instead_of: str | None) -> bool:
        """Write `payment` in place of the version `instead_of`, `None` for none; false when another is there.

        Raises:
            Unavailable: the store cannot be reached. The payment may then be written or not.
        """
        ...

    def remove(self, payment: Payment) -> bool:
        """Forget a payment if it is still at this version; false when it is not.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...
