"""Until when a call must have ended: said by whoever serves it, asked by whatever waits or is about to.

Decides that all parts of a call share one end, also those that run in a pool's threads, and that where nobody said an
end there is none. Brings no clock: who says the end has one. Must never know what waits.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from engine.errors import Unavailable

__all__ = ["check_deadline", "ending_in", "overdue", "seconds_left"]


@dataclass(frozen=True, slots=True)
class _Deadline:
    seconds: float
    left: Callable[[], float]


_current: ContextVar[_Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def ending_in(seconds: float, timer: Callable[[], float]) -> Iterator[None]:
    """The code of the block has so many seconds; `timer` gives seconds, from any start."""
    end = timer() + seconds
    token = _current.set(_Deadline(seconds, lambda: end - timer()))
    try:
        yield
    finally:
        _current.reset(token)


def seconds_left() -> float:
    """How long the call that runs here may take yet; infinite without a deadline, not above 0 past it."""
    deadline = _current.get()
    return math.inf if deadline is None else deadline.left()


def check_deadline() -> None:
    """Begin nothing more once the call should have ended.

    Raises:
        Unavailable: `too_slow`.
    """
    deadline = _current.get()
    if deadline is not None and deadline.left() <= 0:
        raise overdue(deadline.seconds)


def overdue(seconds: float) -> Unavailable:
    """The error of a call that had so many seconds."""
    return Unavailable(
        "too_slow",
        f"the call was stopped after {seconds:g} seconds",
        next_step="call again; if it stays so, narrow it by a filter or a rarer word",
    )
