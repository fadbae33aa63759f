"""`export_messages`: every match to a file, in one pass, never through memory and never into the answer.

Decides what an export is asked, what its record says on the way, and what the caller is told. Who runs a job and for
how long a caller waits is the wiring's. Must never know where files are kept.
"""

import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from engine.answer import Answer
from engine.call import Call
from engine.choices import COLUMNS
from engine.errors import BadInput, NotFound, Unavailable
from engine.excerpts import check
from engine.export_rows import MIME_TYPES, encoded
from engine.hints import hints_of
from engine.hits import Hits, find
from engine.match import compile_tree
from engine.model import Message
from engine.ports import Export, ExportStore
from engine.query.bind import bind
from engine.render import bounded_notes, found_line, found_object, hint_lines, searched_line, searched_object
from engine.requests import Criteria, ExportRequest
from engine.sight import Sight
from engine.snapshot.database import DatabaseSettings
from engine.times import SECOND, iso

__all__ = ["Job", "begin", "resume", "sight_of", "state_of"]

_PROGRESS_ROWS = 50_000
"""Rows between two notes of progress: each is a write to the store."""

_ASK_AGAIN = "call again with the query and filters"


@dataclass
class Job:
    """One export to be written. `run` does it; `cancel` and `fail` from another thread stop it, and no file is left."""

    request: ExportRequest
    call: Call
    store: ExportStore
    database: DatabaseSettings
    hits: Hits
    export: Export
    cancelled: threading.Event = field(default_factory=threading.Event)
    _writing: threading.Lock = field(default_factory=threading.Lock)
    """Held to write file or record for good: what has ended stays as it ended."""

    def run(self) -> None:
        """Write the file and its record; on failure the record says so and no file is left.

        Raises:
            EngineError: what reading or writing met; the record then says `failed`.
        """
        try:
            self._write()
        except _Cancelled:
            return
        except BaseException:
            # A store that failed the file may fail the record too: why the file failed is what the caller needs.
            with suppress(Unavailable):
                self.fail()
            raise

    def cancel(self) -> None:
        """Stop at the next row, since another process goes on; the record stays."""
        self.cancelled.set()

    def fail(self) -> None:
        """Stop at the next row, and let the record say `failed`; nothing happens when the file is whole already.

        Raises:
            Unavailable: the store cannot be reached.
        """
        with self._writing:
            if self.export.state != "running" or self.cancelled.is_set():
                return
            self.cancelled.set()
            if self.store.get(self.export.export_id) is not None:
                self.export = replace(self.export, state="failed")
                self.store.put(self.export)

    def _write(self) -> None:
        """Write the file whole and then its record, or leave nothing of the file."""
        sink = self.store.sink(self.export)
        digest, size = hashlib.sha256(), 0
        columns = tuple(dict.fromkeys(self.request.fields or COLUMNS))
        try:
            for piece in encoded(self._messages(), columns, self.request.format, self.database):
                sink.write(piece)
                digest.update(piece)
                size += len(piece)
            with self._unless_stopped():
                sink.commit()
                rows = self.hits.found.messages
                done = replace(self.export, state="done", rows=rows, size=size, sha256=digest.hexdigest())
                self.store.put(done)
                self.export = done
        except BaseException:
            sink.abort()
            raise

    @contextmanager
    def _unless_stopped(self) -> Iterator[None]:
        """For what is written to the store: not by a job that was stopped, nor for an export that was revoked.

        A revoked export has no record, and writing one anew would bring its link back.
        """
        with self._writing:
            if self.cancelled.is_set() or self.store.get(self.export.export_id) is None:
                raise _Cancelled
            yield

    def answer(self) -> Answer:
        """What the caller is told now."""
        head = {"searched": searched_object(self.hits.searched), "found": found_object(self.hits.found)}
        lines = [searched_line(self.hits.searched), found_line(self.hits.found)]
        return _told(self.export, self.store, head, lines, self.hits.query.notes)

    def _messages(self) -> Iterator[Message]:
        """All hits, oldest first, each checked on its original text."""
        matcher = compile_tree(self.hits.query.tree)
        rows = self.hits.rows
        ordered = rows[np.lexsort((rows, self.hits.view.narrow.sent_at(rows)))]
        for done, message in enumerate(self.hits.view.corpus.stream(ordered)):
            if self.cancelled.is_set():
                raise _Cancelled
            check(matcher, message)
            if done and done % _PROGRESS_ROWS == 0:
                # How far it is can be said later; the file goes on.
                with suppress(Unavailable), self._unless_stopped():
                    self.store.put(replace(self.export, rows=done))
            yield message


class _Cancelled(Exception):
    """Raised within a job that was stopped, or whose export was revoked."""


def begin(
    request: ExportRequest,
    call: Call,
    store: ExportStore,
    database: DatabaseSettings,
    admit: Callable[[int], None] = lambda _: None,
) -> Job | Answer:
    """Check what is asked and start a record; an answer at once where there is nothing to write.

    `admit` is told the exact number of rows before anything is written, and may refuse them.

    Raises:
        BadInput: `missing_parameter`.
        EngineError: what `bind`, `find`, `admit` and the store raise.
    """
    if request.criteria.is_empty:
        raise BadInput(
            "missing_parameter",
            "export_messages needs a query, a filter or export",
            next_step="name what to export; after=1970 takes everything",
        )
    hits = find(call.view, bind(request.criteria, call.view, call.zone), brute=call.brute)
    if not hits.found.messages:
        return _nothing(hits)
    admit(hits.found.messages)
    for old in store.expired(call.now):
        store.revoke(old)
    export = Export(
        export_id=secrets.token_urlsafe(32),
        caller_id=call.caller.caller_id,
        format=request.format,
        state="running",
        created_at=call.now,
        expires_at=call.now + call.limits.export_seconds * SECOND,
        request=json.dumps({**asdict(request), "sight": asdict(call.view.sight)}, ensure_ascii=False),
    )
    store.put(export)
    return Job(request, call, store, database, hits, export)


def sight_of(export: Export) -> Sight:
    """What was in sight of whoever asked for a running export: another process must not see more.

    Raises:
        Unavailable: `export_failed` for a record that does not say.
    """
    plain: Any = json.loads(export.request).get("sight") if export.request else None
    if not isinstance(plain, dict):
        raise Unavailable("export_failed", "the export cannot be gone on with", next_step=_ASK_AGAIN)
    parts: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    return Sight(**parts)


def resume(export: Export, call: Call, store: ExportStore, database: DatabaseSettings) -> Job:
    """The job of a running export, to be written from the start by another process, over what `sight_of` says.

    Raises:
        EngineError: what `bind` and `find` raise.
    """
    plain = json.loads(export.request)
    criteria: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in plain["criteria"].items()
    }
    fields = plain["fields"]
    request = ExportRequest(
        Criteria(**criteria), plain["format"], tuple(fields) if fields is not None else None, plain["export"]
    )
    hits = find(call.view, bind(request.criteria, call.view, call.zone), brute=call.brute)
    return Job(request, call, store, database, hits, replace(export, state="running"))


def state_of(request: ExportRequest, call: Call, store: ExportStore) -> Answer:
    """How far a running export is.

    Raises:
        NotFound: `unknown_export` for an id that is unknown, another caller's, revoked or expired.
        Unavailable: `export_failed`.
    """
    export = store.get(request.export or "")
    if export is None or export.caller_id != call.caller.caller_id or export.expires_at <= call.now:
        raise NotFound(
            "unknown_export",
            "this export is unknown or expired",
            next_step=_ASK_AGAIN,
        )
    if export.state == "failed":
        raise Unavailable("export_failed", "the export could not be written", next_step=_ASK_AGAIN)
    if export.state == "running" and call.now - export.created_at > call.limits.export_run_seconds * 1_000_000:
        raise Unavailable(
            "export_failed", "the export has not ended in its time: its process was stopped", next_step=_ASK_AGAIN
        )
    return _told(export, store, {}, [], ())


def _nothing(hits: Hits) -> Answer:
    hints = hints_of(hits)
    out: dict[str, Any] = {"searched": searched_object(hits.searched), "found": found_object(hits.found), "rows": 0}
    if hints:
        out["hints"] = hints
    notes = bounded_notes([*hits.query.notes, "nothing to export: no file was made"])
    out["notes"] = notes
    lines = [
        searched_line(hits.searched),
        found_line(hits.found),
        *hint_lines(hints),
        *(f"note: {note}" for note in notes),
    ]
    return Answer("\n".join(lines), out)


def _told(export: Export, store: ExportStore, head: dict[str, Any], lines: list[str], notes: tuple[str, ...]) -> Answer:
    bounded = bounded_notes(notes)
    tail = {"notes": bounded} if bounded else {}
    lines = [*lines, *(f"note: {note}" for note in bounded)]
    if export.state != "done":
        running = {"running": True, "export": export.export_id, "rows": export.rows}
        text = f"running: {export.rows} rows so far; ask again with export={export.export_id}"
        return Answer("\n".join([*lines, text]), {**head, **running, **tail})
    link = store.link(export)
    done = {
        "link": link,
        "format": export.format,
        "rows": export.rows,
        "bytes": export.size,
        "sha256": export.sha256,
        "expires": iso(export.expires_at),
    }
    lines += [
        (
            f"exported: {export.rows} rows as {export.format}, {export.size} bytes,"
            f" until {iso(export.expires_at)}, sha256 {export.sha256}"
        ),
        f"link: {link}",
    ]
    return Answer("\n".join(lines), {**head, **done, **tail}, link=link, mime_type=MIME_TYPES[export.format])
