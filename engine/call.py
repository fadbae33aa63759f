"""One call: who asks, when, over what they see. Made once by the wiring, passed to every use case."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, tzinfo

from engine.limits import Limits
from engine.ports import SeenStore
from engine.sight import Caller
from engine.view import View

__all__ = ["Call", "mint_handle"]


def mint_handle() -> str:
    """A new session handle: 128 bits of entropy in 22 characters."""
    return secrets.token_urlsafe(16)


@dataclass(frozen=True, slots=True)
class Call:
    """Everything a use case needs beside the request. `now` is microseconds since 1970, UTC.

    `zone` is where dates without one are read; `brute` scans even where an index could answer.
    """

    view: View
    caller: Caller
    now: int
    seen: SeenStore
    zone: tzinfo = UTC
    brute: bool = False
    mint: Callable[[], str] = mint_handle

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self.view.limits
