"""The scheduled refresh: one at a time, and over before the function is.

Decides when to start and when to give up; what a refresh is, the application knows. The event is not looked
at but for `{"force": true}`. What is raised here makes Lambda try twice more and then put the event in the
dead-letter queue, so what a second try cannot mend is reported instead.
"""

import logging
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

from engine.errors import Refused, Unavailable
from engine.tally import counting
from engine.watch import watched
from handler.app import App
from handler.faults import tell
from handler.lambda_settings import at_start, lambda_settings
from handler.signals import Signals
from handler.wiring import build_app, build_refresh_lock, system_clock

__all__ = ["LambdaContext", "Lock", "handler", "refresh"]

logger = logging.getLogger(__name__)

SPARE_SECONDS = 20.0
"""Kept back for the upload in hand, the pointer, and the answer."""

MIN_SECONDS = 30.0
"""With less than this there is no use in starting."""


_LOGGED = ("snapshot", "published", "refreshed", "why", "messages", "bytes", "redacted", "removed_snapshots")
"""Of a report; the problems of its sources name their files."""


class LambdaContext(Protocol):
    """What is used of the runtime's context. The id is the same when Lambda tries an event again."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function is killed."""
        ...


class Lock(Protocol):
    """Keeps two refreshes from running at once."""

    def take(self, seconds: float, owner: str) -> None:
        """Hold it for at most so long; whom it is held by takes it again.

        Raises:
            Refused: `refresh_running`.
            Unavailable: the lock cannot be reached.
        """
        ...

    def release(self) -> None:
        """Give it back; never raises."""
        ...


def refresh(app: App, lock: Lock, remaining_seconds: Callable[[], float], owner: str, *, force: bool) -> dict[str, Any]:
    """The report of a refresh, or `{"refreshed": false, "why"}` when another one is or was there first.

    `owner` names the event, also when it is tried again: what a killed refresh held is its own next try's.

    Raises:
        EngineError: the sources or the store failed, or time ran out; the current snapshot stands.
    """
    left = remaining_seconds()
    if left < MIN_SECONDS:
        raise Unavailable("no_time", f"{left:.0f} s are too few for a refresh", next_step="give it more")

    at = "starting"

    def note(step: str, done: int, total: int | None) -> None:
        nonlocal at
        del done, total
        at = step

    def ask() -> None:
        if remaining_seconds() < SPARE_SECONDS:
            raise Unavailable(
                "no_time",
                f"time ran out while {at}; nothing was published",
                next_step="raise the function's memory, which its processors grow with",
            )

    try:
        # A killed function cannot give its lock back, so the lock ends when the function would.
        lock.take(left, owner)
        try:
            with watched(ask):
                return app.refresh(note, force=force)
        finally:
            lock.release()
    except Refused as error:
        return {"refreshed": False, "why": error.to_object()}


@cache
def _parts() -> tuple[App, Lock]:
    settings = lambda_settings()
    return build_app(settings, system_clock), build_refresh_lock(settings)


@cache
def _signals() -> Signals:
    return Signals(lambda_settings().signals, system_clock)


def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """A refresh, for the schedule or by hand."""
    with _signals().invocation(context):
        app, lock = _parts()
        force = isinstance(event, dict) and event.get("force") is True
        started, report = time.perf_counter(), None
        try:
            with counting() as tally:
                report = refresh(
                    app,
                    lock,
                    lambda: context.get_remaining_time_in_millis() / 1_000,
                    context.aws_request_id,
                    force=force,
                )
        except Exception as error:  # noqa: BLE001 - Lambda logs the message of what is raised: ours holds no text
            raise RuntimeError(tell(error)) from None
        finally:
            _signals().refreshed(report, time.perf_counter() - started, tally)
        logger.info("refresh: %s", {name: report[name] for name in _LOGGED if name in report})
        return report


def _start() -> None:
    _signals().install()
    _parts()


at_start(_start)
