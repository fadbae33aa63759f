"""Whether long work may go on: asked at every step by who does it, answered by who began it.

Decides whose answer counts: that of the block the code runs in; a thread of a pool belongs to no block, so it asks
the only one there is. Where nobody watches, work goes on. Must never know what the answer depends on: a clock, for one,
is the watcher's.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["go_on", "interrupting", "watched"]

Ask = Callable[[], None]
"""Returns while work may go on; what it raises ends the work. Safe to call from several threads."""

_ASKED_EVERY_SECONDS = 0.5
"""How late a statement may be interrupted; little beside what is kept back of a function's time."""

_current: ContextVar[Ask | None] = ContextVar("watch", default=None)
_active: list[Ask] = []
_lock = threading.Lock()


@contextmanager
def watched(ask: Ask) -> Iterator[None]:
    """Let `ask` answer for the code in the block."""
    token = _current.set(ask)
    with _lock:
        _active.append(ask)
    try:
        yield
    finally:
        with _lock:
            _active.remove(ask)
        _current.reset(token)


def go_on() -> None:
    """Ask; raises what the watcher raises when work must end."""
    ask = _of_here()
    if ask is not None:
        ask()


@contextmanager
def interrupting(interrupt: Callable[[], None]) -> Iterator[None]:
    """Ask while the code in the block is at a step that cannot, and `interrupt` it when the answer is no.

    What the interrupted step raises is replaced by what the watcher raised. Whatever the block begins after
    that is interrupted as well.
    """
    ask = _of_here()
    if ask is None:
        yield
        return
    refusals: list[BaseException] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(_ASKED_EVERY_SECONDS):
            try:
                ask()
            except BaseException as error:  # noqa: BLE001 - handed over to the thread that works
                refusals.append(error)
                break
        while not over.is_set():
            interrupt()
            over.wait(_ASKED_EVERY_SECONDS)

    looking = threading.Thread(target=look, name="watch", daemon=True)
    looking.start()
    try:
        yield
    except Exception:
        if refusals:
            raise refusals[0] from None
        raise
    finally:
        over.set()
        looking.join()


def _of_here() -> Ask | None:
    own = _current.get()
    if own is not None:
        return own
    with _lock:
        return _active[0] if len(_active) == 1 else None
