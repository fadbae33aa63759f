"""The application: each request to its use case, with the corpus and the session store it needs.

Decides which use case answers, and how long a caller waits for an export. Must never know which adapters it runs on.
"""

import logging
import math
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, assert_never

from engine.answer import Answer
from engine.call import Call
from engine.count import count
from engine.deadline import ending_in, seconds_left
from engine.errors import EngineError, NotFound, Unavailable
from engine.export import Job, begin, resume, sight_of, state_of
from engine.facts import instructions
from engine.limits import Limits, Retention
from engine.ports import ExportStore, Progress, SeenStore, SnapshotStore, Source
from engine.reader import SnapshotReader
from engine.requests import CountRequest, ExportRequest, Request, SearchRequest, ThreadRequest, UnseenRequest
from engine.search import search, unseen
from engine.sight import Caller
from engine.snapshot.database import DatabaseSettings
from engine.thread import open_thread
from handler.faults import tell

__all__ = ["LocalApp", "Parts", "Patience"]

logger = logging.getLogger(__name__)

_HAND_OVER_SECONDS = 2.0
"""Kept of a call's time to have another process go on with an export, and to say so."""


@dataclass(frozen=True, slots=True)
class Patience:
    """What the process allows an export, where that is not the setting's alone.

    `seconds` gives how many an export may still take, in place of `Parts.export_wait_seconds`. A process that is not
    `lasting` stands still once it has answered: there an export that is not handed over ends as `failed`, since nobody
    would write it.
    """

    seconds: Callable[[], float] | None = None
    lasting: bool = True


@dataclass(frozen=True, slots=True)
class Parts:
    """What an application is made of.

    `later` hands a running export to another process; without it a thread goes on, which the process waits for.
    `export_wait_seconds` is how long a call waits for one, from its own beginning, `None` until it is written.
    `admit` may refuse an export by its rows before anything of it is written.
    """

    name: str
    zone: tzinfo
    limits: Limits
    clock: Callable[[], int]
    snapshots: SnapshotStore
    reader: SnapshotReader
    seen: SeenStore
    exports: ExportStore
    sources: Callable[[], Sequence[Source]]
    rules: str
    database: DatabaseSettings
    retention: Retention
    version: str
    redact: bool = True
    later: Callable[[str], None] | None = None
    export_wait_seconds: float | None = None
    patience: Patience = field(default_factory=Patience)
    admit: Callable[[int], None] = lambda _: None


def _wait(seconds: float | None) -> float | None:
    """No longer than the call has yet."""
    left = seconds_left() - _HAND_OVER_SECONDS
    return seconds if math.isinf(left) else max(0.0, left if seconds is None else min(seconds, left))


class LocalApp:
    """An `App` over the engine's use cases."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._writing: set[_Writing] = set()

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self._parts.limits

    def call(self, request: Request, caller: Caller, *, brute: bool = False) -> Answer:
        """Answer one tool call."""
        call = self._call(caller, brute=brute)
        match request:
            case CountRequest():
                return count(request, call)
            case SearchRequest():
                return search(request, call)
            case UnseenRequest():
                return unseen(request, call)
            case ThreadRequest():
                return open_thread(request, call)
            case ExportRequest():
                return self._export(request, call)
            case _:
                assert_never(request)

    def instructions(self, caller: Caller) -> str:
        """What an agent should know before its first call."""
        return instructions(self._call(caller).view, self._parts.name)

    def corpus(self, caller: Caller) -> dict[str, Any]:
        """`count_messages` without arguments."""
        return count(CountRequest(), self._call(caller)).object

    def finish_export(self, export_id: str) -> dict[str, Any]:
        """Write a running export whole."""
        parts = self._parts
        export = parts.exports.get(export_id)
        if export is None:
            raise NotFound("unknown_export", "this export is unknown or expired")
        if export.state != "done":
            caller = Caller(export.caller_id, sight_of(export))
            call = self._call(caller)
            job = resume(export, call, parts.exports, parts.database)
            if parts.patience.lasting:
                job.run()
            else:
                _Writing(job, self._writing).wait(self._left(call))
                job.fail()
            export = job.export
        return {"export": export.export_id, "state": export.state, "rows": export.rows}

    def refresh(self, progress: Progress | None = None, *, force: bool = False) -> dict[str, Any]:
        """Read the sources and publish a snapshot."""
        from engine.refresh import Build, refresh  # noqa: PLC0415 - who only answers does not refresh

        parts = self._parts
        build = Build(
            now=parts.clock(),
            hayfork=parts.version,
            database=parts.database,
            retention=parts.retention,
            work=self._work_folder(),
            rules=parts.rules,
            redact=parts.redact,
        )
        return refresh(parts.sources(), parts.snapshots, build, progress or _silent, force=force)

    def verify(self, progress: Progress | None = None) -> dict[str, Any]:
        """Rehash every file of the current snapshot."""
        from engine.refresh import verify  # noqa: PLC0415 - who only answers does not verify

        return verify(self._parts.snapshots, progress or _silent)

    def close(self) -> None:
        """Let go of connections, when the exports that go on are written."""
        for writing in tuple(self._writing):
            writing.join()
        self._parts.reader.close()

    def _call(self, caller: Caller, *, brute: bool = False) -> Call:
        parts = self._parts
        now = parts.clock()
        self._work_folder()
        return Call(parts.reader.view(caller.sight, now), caller, now, parts.seen, parts.zone, brute)

    def _work_folder(self) -> Any:
        folder = self._parts.database.temp_folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _export(self, request: ExportRequest, call: Call) -> Answer:
        parts = self._parts
        if request.export is not None:
            return state_of(request, call, parts.exports)
        started = begin(request, call, parts.exports, parts.database, parts.admit)
        if isinstance(started, Answer):
            return started
        writing = _Writing(started, self._writing)
        try:
            writing.wait(_wait(self._left(call)))
        except KeyboardInterrupt:
            writing.give_up()
            raise
        if started.export.state == "running":
            self._leave(started)
        if started.export.state == "failed":
            raise Unavailable(
                "export_failed", "the export takes longer than there is time", next_step="narrow it by a filter"
            )
        return started.answer()

    def _left(self, call: Call) -> float | None:
        """Seconds an export of this call may still take."""
        parts = self._parts
        if parts.patience.seconds is not None:
            return max(0.0, parts.patience.seconds())
        if parts.export_wait_seconds is None:
            return None
        return max(0.0, parts.export_wait_seconds - (parts.clock() - call.now) / 1_000_000)

    def _leave(self, job: Job) -> None:
        """What becomes of a job that outlasts its call."""
        parts = self._parts
        if parts.later is None:
            if not parts.patience.lasting:
                job.fail()
            return
        try:
            # Handed over first: if that fails, the thread here goes on where it can.
            parts.later(job.export.export_id)
        except EngineError:
            if not parts.patience.lasting:
                job.fail()
            raise
        job.cancel()


class _Writing:
    """A job in a thread of its own, which the process waits for when it ends; among `going` as long as it goes on."""

    def __init__(self, job: Job, going: "set[_Writing]") -> None:
        self._job = job
        self._going = going
        self._failure: BaseException | None = None
        self._waited_for = True
        self._lock = threading.Lock()
        # What it costs is its own call's, also when that has been answered and another one is under way.
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), name="export")
        going.add(self)
        self._thread.start()

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    def wait(self, seconds: float | None) -> None:
        """Wait so long, `None` until it has ended; raises what it has raised by then, later failures are logged."""
        self._thread.join(seconds)
        with self._lock:
            self._waited_for = False
            if self._failure is not None:
                raise self._failure

    def give_up(self) -> None:
        """Stop at the next row, leave no file, and say so in the record."""
        with suppress(Unavailable):
            self._job.fail()
        self.join()

    def _run(self) -> None:
        try:
            # The end of its call is not its own.
            with ending_in(math.inf, lambda: 0.0):
                self._job.run()
        except Exception as error:  # noqa: BLE001 - handed over to whoever waits, else told in the log
            with self._lock:
                self._failure = error
                if not self._waited_for:
                    logger.error("an export failed after its call had been answered: %s", tell(error))  # noqa: TRY400 - `tell` logs what may be said of a traceback
        finally:
            self._going.discard(self)


def _silent(step: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""
    del step, done, total
