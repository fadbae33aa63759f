"""The application with an end to every call: an answer or a clear error in time, whatever waits behind it.

Decides that a call runs in a thread of its own, which is left behind when it does not end: what it begins after its
time is refused (`engine.deadline`), so it soon does. Refreshing, verifying and finishing an export take as long as they
take. Must never know what a call does.
"""

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from engine.answer import Answer
from engine.deadline import ending_in, overdue
from engine.errors import Unavailable
from engine.limits import Limits
from engine.ports import Progress
from engine.requests import ExportRequest, Request, UnseenRequest
from engine.sight import Caller
from handler.app import App

__all__ = ["GRACE_SECONDS", "TimedApp"]

GRACE_SECONDS = 2.0
"""From the end of a call's time until its caller hears so: what has begun in time, a claim above all, may end in it."""

_IN_DOUBT = "call again with after_batch, the last batch received, or what this call may record is never shown"

_T = TypeVar("_T")


@dataclass
class _Told(Generic[_T]):
    answers: list[_T] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)


class TimedApp:
    """An `App` around another one, whose calls end within `limits.call_seconds` and the grace.

    `export_seconds` gives the time of an export where it has more, since nothing else would go on with it.
    """

    def __init__(
        self,
        inner: App,
        *,
        grace_seconds: float = GRACE_SECONDS,
        export_seconds: Callable[[], float] | None = None,
    ) -> None:
        self._inner = inner
        self._grace_seconds = grace_seconds
        self._export_seconds = export_seconds

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self._inner.limits

    def call(self, request: Request, caller: Caller, *, brute: bool = False) -> Answer:
        """Answer one tool call in time."""
        try:
            return self._in_time(lambda: self._inner.call(request, caller, brute=brute), self._seconds_of(request))
        except _LeftBehindError as error:
            if isinstance(request, UnseenRequest):
                raise Unavailable(error.code, error.message, next_step=_IN_DOUBT) from None
            raise

    def instructions(self, caller: Caller) -> str:
        """Likewise."""
        return self._in_time(lambda: self._inner.instructions(caller), self.limits.call_seconds)

    def corpus(self, caller: Caller) -> dict[str, Any]:
        """Likewise."""
        return self._in_time(lambda: self._inner.corpus(caller), self.limits.call_seconds)

    def finish_export(self, export_id: str) -> dict[str, Any]:
        """As the application inside; likewise all below."""
        return self._inner.finish_export(export_id)

    def refresh(self, progress: Progress | None = None, *, force: bool = False) -> dict[str, Any]:
        """Read the sources and publish a snapshot."""
        return self._inner.refresh(progress, force=force)

    def verify(self, progress: Progress | None = None) -> dict[str, Any]:
        """Rehash every file of the current snapshot."""
        return self._inner.verify(progress)

    def _seconds_of(self, request: Request) -> float:
        seconds = self.limits.call_seconds
        if self._export_seconds is None or not isinstance(request, ExportRequest):
            return seconds
        return max(seconds, self._export_seconds())

    def _in_time(self, work: Callable[[], _T], seconds: float) -> _T:
        told = _Told[_T]()

        def run() -> None:
            try:
                with ending_in(seconds, time.monotonic):
                    told.answers.append(work())
            except BaseException as error:  # noqa: BLE001 - handed over to the thread that waits
                told.failures.append(error)

        # With the context of the caller: what the call costs is counted there.
        thread = threading.Thread(target=copy_context().run, args=(run,), name="call", daemon=True)
        thread.start()
        thread.join(seconds + self._grace_seconds)
        if told.failures:
            raise told.failures[0]
        if not told.answers:
            raise _LeftBehindError(seconds)
        return told.answers[0]


class _LeftBehindError(Unavailable):
    """A call that has not ended in its time and grace."""

    def __init__(self, seconds: float) -> None:
        plain = overdue(seconds)
        super().__init__(plain.code, plain.message, next_step=plain.next_step)
