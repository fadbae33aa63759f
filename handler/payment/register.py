"""The register of payments: which have bought their answer, and which are still about to.

Decides the steps that a payment takes, each one conditional write, so that of two calls with one payment one works and
at most one answers. Must never know a facilitator, nor what an answer says.

    nothing -> held -> settling -> answered        the way of a paid call
               held -> nothing                     it failed, or was free: nothing was asked of the payer
                       settling -> nothing         the money did not move, and will not
                       settling, lease over        nobody knows whether it moved: the same payment may ask again,
                                                   for the same call only
"""

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

from engine.errors import NotFound, Unavailable
from engine.payments import Payment, PaymentState, PaymentStore
from handler.payment.offer import Declined, Offer

__all__ = ["Register"]

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_MARGIN = 5 * _SECOND
_SESSION_DAYS = 31
"""No session lives longer, so no repeat comes later."""

_EXPORT_DAYS = 2
"""No export's link works longer, unless a setting says so."""


class Register:
    """Payments in `store`. `clock` gives microseconds since 1970; a settlement takes at most `settle_seconds`."""

    def __init__(self, store: PaymentStore, clock: Callable[[], int], settle_seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._settling = int(settle_seconds * _SECOND) + _MARGIN

    def left_over(self, offer: Offer, call: str) -> Payment | None:
        """The same payment for the same call, of whose settlement nobody knows; `None` for one never seen.

        Raises:
            Declined: it has bought its answer, a call works on it, or it was meant for another call.
            Unavailable: the store cannot be reached.
        """
        found = self._store.get(offer.payment_id)
        if found is None:
            return None
        if found.state == "answered":
            raise Declined("this payment has bought its answer; sign another")
        if found.state == "settling" and found.lease_until <= self._clock():
            if (found.call, found.proof) == (call, offer.proof):
                return found
            raise Declined("this payment was meant for another call; repeat that one")
        raise Declined("another call works on this payment")

    def hold(self, offer: Offer, call: str) -> Payment:
        """Have this call, and no other, work on the payment.

        Raises:
            Declined: another call was first.
            Unavailable: the store cannot be reached.
        """
        ends = offer.valid_before * _SECOND + _DAY
        held = Payment(offer.payment_id, _version(), "held", offer.payer, call, offer.proof, ends, ends)
        if not self._store.put(held, None):
            raise Declined("another call works on this payment")
        return held

    def settling(self, payment: Payment, batch: int = 0) -> Payment:
        """The payment, of which from now on nobody can say that it did not move money. Raises as `hold`."""
        until = self._clock() + self._settling
        return self._changed(payment, replace(payment, state="settling", lease_until=until, batch=batch))

    def answered(self, payment: Payment) -> Payment:
        """The payment with its answer bought: whoever is told so may give the answer. Raises as `hold`."""
        return self._changed(payment, replace(payment, state="answered"))

    def let_go(self, payment: Payment) -> None:
        """Forget a payment that bought nothing; never raises: one that stays buys nothing either."""
        with suppress(Unavailable):
            self._store.remove(payment)

    def leave_open(self, payment: Payment) -> None:
        """Let the same payment ask again at once; never raises, since its lease ends by itself."""
        with suppress(Unavailable, Declined):
            self._changed(payment, replace(payment, lease_until=0))

    def note_batch(self, payer: str, session: str, batch: int) -> None:
        """Remember that a batch was paid for; never raises: a repeat is then paid for again."""
        name = _batch_id(payer, session, batch)
        with suppress(Unavailable):
            self._store.put(self._plain(name, "answered", payer, _SESSION_DAYS), None)

    def has_batch(self, payer: str, session: str, batch: int) -> bool:
        """Whether this payer has paid for this batch.

        Raises:
            Unavailable: the store cannot be reached.
        """
        return self._store.get(_batch_id(payer, session, batch)) is not None

    def owe(self, payer: str, export_id: str, amount: int) -> None:
        """Remember what an export costs whose link is still to be given.

        Raises:
            Unavailable: the store cannot be reached.
        """
        owed = replace(self._plain(_export_id(export_id), "owed", payer, _EXPORT_DAYS), amount=amount)
        self._store.put(owed, None)

    def owed(self, export_id: str, payer: str | None) -> Payment:
        """What an export costs; of another payer's, of an unknown one and of one that is over nothing is known.

        Raises:
            NotFound: `unknown_export`.
            Unavailable: the store cannot be reached.
        """
        found = self._store.get(_export_id(export_id))
        if found is None or (payer is not None and found.payer != payer):
            raise NotFound(
                "unknown_export",
                "this export is unknown or expired",
                next_step="call again with the query and filters",
            )
        return found

    def paid_off(self, owed: Payment) -> None:
        """Let the link of an export be asked for again; never raises: it is then paid for again."""
        with suppress(Unavailable, Declined):
            self._changed(owed, replace(owed, state="answered"))

    def _changed(self, before: Payment, after: Payment) -> Payment:
        after = replace(after, version=_version())
        if not self._store.put(after, before.version):
            raise Declined("another call works on this payment")
        return after

    def _plain(self, name: str, state: PaymentState, payer: str, days: int) -> Payment:
        return Payment(name, _version(), state, payer, "", "", 0, self._clock() + days * _DAY)


def _version() -> str:
    return secrets.token_hex(16)


def _batch_id(payer: str, session: str, batch: int) -> str:
    # The handle of a session is a secret, so it is kept as a digest.
    return f"batch:{sha256(f'{payer}|{batch}|{session}'.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _export_id(export_id: str) -> str:
    return f"export:{sha256(export_id.encode('utf-8', 'surrogatepass')).hexdigest()}"
