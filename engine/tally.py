"""What one call cost: a tally that whoever does the work adds to, and whoever began the call reads.

Decides whose tally a count goes to: that of the call the code runs in; a thread of a pool belongs to no call, so what
it counts goes to the only call there is, and to nobody when there are several. Nothing is counted where nobody
counts. Must never know what a count means, nor hold a text, link or key: the terms of a plan are the caller's own.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

__all__ = ["PlannedTerm", "Tally", "add", "counting", "current", "note_plan", "note_snapshot"]


@dataclass(frozen=True, slots=True)
class PlannedTerm:
    """One term as it was asked for, how it was answered (`fts` or `substring`), and in how many rows it occurs."""

    term: str
    path: str
    rows: int


@dataclass(slots=True)
class Tally:
    """Counts by name, the plan of the call's terms, and when its snapshot was made (microseconds since 1970, UTC)."""

    counts: Counter[str] = field(default_factory=Counter)
    plan: list[PlannedTerm] = field(default_factory=list)
    snapshot_at: int | None = None


_current: ContextVar[Tally | None] = ContextVar("tally", default=None)
_active: list[Tally] = []
_lock = threading.Lock()


@contextmanager
def counting() -> Iterator[Tally]:
    """A new tally for the code in the block."""
    tally = Tally()
    token = _current.set(tally)
    with _lock:
        _active.append(tally)
    try:
        yield tally
    finally:
        with _lock:
            _active[:] = [each for each in _active if each is not tally]
        _current.reset(token)


def current() -> Tally | None:
    """The tally of the call that the code runs in, `None` where nobody counts."""
    return _current.get()


def add(name: str, count: int = 1) -> None:
    """Count something."""
    with _lock:
        tally = _of_here()
        if tally is not None:
            tally.counts[name] += count


def note_plan(terms: Sequence[PlannedTerm]) -> None:
    """Say how terms were answered."""
    with _lock:
        tally = _of_here()
        if tally is not None:
            tally.plan += terms


def note_snapshot(made_at: int) -> None:
    """Say when the snapshot that is read was made."""
    with _lock:
        tally = _of_here()
        if tally is not None:
            tally.snapshot_at = made_at


def _of_here() -> Tally | None:
    own = _current.get()
    if own is not None:
        return own
    return _active[0] if len(_active) == 1 else None
