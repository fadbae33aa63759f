"""`open_thread`: messages whole, with what was said before and after them.

Decides which neighbours stand around a message, in which sequence, and what is shortened when room is short. Must
never know queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.answer import Answer
from engine.call import Call
from engine.errors import BadInput, NotFound, Refused, give_list, quoted, values_in
from engine.excerpts import Texts
from engine.match import compile_tree
from engine.model import Message
from engine.pack import Packer, Piece
from engine.record import UNRECORDED, record, session_for
from engine.render import Shown, bounded_notes, chosen_fields, clipped, counted, inline, message_line, message_object
from engine.requests import ThreadRequest
from engine.seen import Session, digest
from engine.snippet import Snippet, slice_text
from engine.text import display, one_line
from engine.view import View
from engine.windows import Window, merged

__all__ = ["open_thread"]

Rows = NDArray[np.int64]

_HOISTED = frozenset({"conversation", "thread", "thread_size"})
_LONG_FIELDS = frozenset({"attributes", "link"})
_BARE = frozenset({"text", "truncated"})
"""The least that can be shown of a message beside its id."""
_MOST_LISTED = 10
"""Ids that an error repeats as a list: as many as one call takes."""
_SHORTEST_SLICE = 40
"""A slice of a long message is never cut below this: it must make progress."""


@dataclass(frozen=True, slots=True)
class _Page:
    """A talk as far as it fits: lines and objects by row, in order of time."""

    talk: Window
    pieces: dict[int, Piece]

    @property
    def rows(self) -> list[int]:
        """The rows shown, in the order of the sequence."""
        return [row for row in self.talk.rows if row in self.pieces]

    def left_out(self) -> dict[str, int]:
        """How many of the sequence lie earlier and later than what is shown, and between, where there are any."""
        places = np.flatnonzero(np.isin(self.talk.sequence, self.rows))
        first, last = int(places[0]), int(places[-1])
        between = last - first + 1 - len(places)
        return {
            "earlier": first,
            **({"between": between} if between else {}),
            "later": len(self.talk.sequence) - 1 - last,
        }


def open_thread(request: ThreadRequest, call: Call) -> Answer:
    """Read messages whole, each with its neighbours.

    Raises:
        NotFound: `unknown_message`, `unknown_session`.
        BadInput: `bad_value` for an offset past the end, or one given with several messages.
    """
    view = call.view
    session = session_for(call, request.session)
    rows = [_row(view, message_id) for message_id in dict.fromkeys(request.message)]
    if request.text_offset and len(rows) > 1:
        raise BadInput("bad_value", "text_offset goes with one message", next_step="open the long message alone")
    pages, notes = _fitted(rows, request, call, session)
    shown = [row for page in pages for row in page.talk.asked]
    around = [row for page in pages for row in page.rows if row not in shown]
    handle, number = request.session, 0
    if session is not None:
        batch = record(call, session, digest(request), shown=shown, around=around)
        if batch is not None:
            handle, number = session.handle, batch.number
    return Answer(*_forms(view, pages, handle, number, [*notes, *([] if number else [UNRECORDED])]))


def _fitted(
    rows: Sequence[int], request: ThreadRequest, call: Call, session: Session | None
) -> tuple[list[_Page], tuple[str, ...]]:
    """The pages, and notes on what was left out of the messages asked for so that they fit."""
    fields = chosen_fields(request.fields)
    fields = fields | {"link"} if request.fields is None else fields
    attempts = [
        (rows, fields, ()),
        (rows, fields - _LONG_FIELDS, (f"{' and '.join(sorted(_LONG_FIELDS))} left out to fit",)),
        (rows, _BARE, ("all fields but the text left out to fit",)),
    ]
    for many in range(len(rows) - 1, 0, -1):
        left = f"{counted(len(rows) - many, 'message')} asked for did not fit: open the last ones in another call"
        attempts.append((rows[:many], _BARE, ("all fields but the text left out to fit", left)))
    for some, own, notes in attempts:
        pages = _pages(_talks(call.view, some, request), request, call, session, own, notes)
        if pages is not None:
            return pages, notes
    raise Refused("page_too_small", "not even one message fits a page", next_step="raise limits.page_bytes")


def _row(view: View, message_id: str) -> int:
    row = view.row_of(message_id.strip().removeprefix("[").removesuffix("]"))
    if row is None:
        ids = values_in(message_id)[:_MOST_LISTED]
        raise NotFound(
            "unknown_message",
            f"no message {quoted(message_id)}",
            next_step=give_list(ids) if len(ids) > 1 else "copy an id from a result, or search_messages",
        )
    return row


def _talks(view: View, rows: Sequence[int], request: ThreadRequest) -> list[Window]:
    """A talk for each row, at the place of the first of those whose windows meet: they are one."""
    sequences = ((row, *_sequence(view, row, request.view)) for row in rows)
    return merged(Window.around(row, rows, request.earlier, request.later, kind) for row, kind, rows in sequences)


def _near_first(talk: Window) -> list[int]:
    """The other rows of the window, nearest to one asked for first, later before earlier."""
    places = {row: place for place, row in enumerate(talk.rows)}
    asked = [places[row] for row in talk.asked]
    others = [row for row in places if row not in talk.asked]
    return sorted(others, key=lambda row: (min(abs(places[row] - at) for at in asked), -places[row]))


def _sequence(view: View, row: int, kind: str) -> tuple[str, Rows]:
    """What `view` calls it, and its rows in order of time, `row` among them."""
    if not view.talked[row]:
        return "conversation", np.array([row], dtype=np.int64)
    if kind in {"auto", "thread"}:
        # A deleted root is no message, but the one reply it left is in a thread all the same.
        rows = view.thread_rows(row)
        if kind == "thread" or len(rows) > 1:
            return "thread", rows
        kind = "conversation"
    rows = view.conversation_rows(row)
    if kind == "author":
        people = view.people[view.narrow.author[rows]]
        rows = rows[people == view.people[view.narrow.author[row]]]
    return kind, rows


def _pages(
    talks: Sequence[Window],
    request: ThreadRequest,
    call: Call,
    session: Session | None,
    asked_fields: frozenset[str],
    notes: Sequence[str],
) -> list[_Page] | None:
    """Fill the room: each talk an equal part of it, what one does not need goes to the next.

    The messages asked for have `asked_fields`; `None` when one of them does not fit.
    """
    view = call.view
    texts = Texts(view, compile_tree(None), chosen_fields(request.fields))
    texts.load(row for talk in talks for row in talk.rows)
    seen = _seen(view, session, [row for talk in talks for row in _near_first(talk)])
    widest = [_Page(talk, {}) for talk in talks]
    text, envelope = _forms(view, widest, "x" * 64, 10**9, [*notes, UNRECORDED], reserve=True)
    packer = Packer(view.limits.page, view.limits.page.page, text, envelope)
    fields = chosen_fields(request.fields)
    pages = []
    for number, talk in enumerate(talks):
        share = packer.left() // (len(talks) - number)
        spent = packer.left()
        pieces: dict[int, Piece] = {}
        part = share // len(talk.asked)
        for row in talk.asked:
            whole = _whole(packer, texts.message(row), request.text_offset, view, asked_fields, part)
            if whole is None:
                return None
            pieces[row] = whole
        stopped: set[tuple[int, bool]] = set()
        places = {int(row): place for place, row in enumerate(talk.sequence.tolist())}
        for row in _near_first(talk):
            nearest = min(talk.asked, key=lambda asked: abs(places[asked] - places[row]))
            side = nearest, places[row] > places[nearest]
            limit = min(request.text_limit, view.limits.seen_neighbour_chars) if row in seen else request.text_limit
            piece = _piece(texts.neighbour(row, limit), fields)
            if side in stopped or not packer.offer(piece, share=max(0, share - (spent - packer.left()))):
                stopped.add(side)
                continue
            pieces[row] = piece
        pages.append(_Page(talk, pieces))
    return pages


def _seen(view: View, session: Session | None, rows: Sequence[int]) -> set[int]:
    if session is None or not session.batches or not rows:
        return set()
    corpus = view.corpus
    mask = session.seen(corpus.message_keys[list(rows)], corpus.copy_keys[list(rows)])
    return {row for row, was in zip(rows, mask.tolist(), strict=True) if was}


def _whole(
    packer: Packer, message: Message, offset: int, view: View, fields: frozenset[str], share: int
) -> Piece | None:
    """The message asked for: whole, or the longest slice from `offset` on that fits its share of the room.

    `None` when not even the shortest slice fits.
    """
    if offset and offset >= len(message.body):
        raise BadInput(
            "bad_value",
            f"text_offset {offset} is past the end of the text, which has {len(message.body)} characters",
            next_step="start at 0",
        )
    size = int(view.thread_sizes[view.narrow.thread[message.row]])
    length = view.limits.slice_chars
    while True:
        text, next_offset = slice_text(message.body, offset, length)
        cut = next_offset is not None or offset > 0
        shown = Shown(
            message,
            Snippet(display(text), len(message.body) if cut else None),
            topic=clipped(display(message.topic), 120),
            thread_size=size,
            sliced=cut,
            next_offset=next_offset,
        )
        piece = _piece(shown, fields)
        if packer.offer(piece, share=share):
            return piece
        if length <= _SHORTEST_SLICE:
            return piece if packer.offer(piece) else None
        length = max(_SHORTEST_SLICE, length // 2)


def _piece(shown: Shown, fields: frozenset[str]) -> Piece:
    return Piece(
        message_line(shown, fields, _HOISTED),
        [message_object(replace(shown, around=False), fields, _HOISTED)],
    )


def _forms(
    view: View,
    pages: Sequence[_Page],
    handle: str | None,
    batch: int,
    notes: Sequence[str],
    *,
    reserve: bool = False,
) -> tuple[str, dict[str, Any]]:
    """The result in both forms. One talk stands flat, several in a list."""
    heads = [_head(view, page, reserve=reserve) for page in pages]
    told = bounded_notes(notes)
    tail: dict[str, Any] = {}
    if handle is not None:
        tail |= {"session": handle, "batch": batch} if batch else {"session": handle}
    if told:
        tail["notes"] = told
    session = f" | session {handle}" + (f" batch {batch}" if batch else "") if handle is not None else ""
    lines: list[str] = []
    objects: list[dict[str, Any]] = []
    for number, (page, (head_lines, head)) in enumerate(zip(pages, heads, strict=True)):
        first, *others = head_lines
        lines += [""] if number else []
        lines += [first, *(line + session if number == 0 else line for line in others)]
        lines += [f"note: {note}" for note in told] if number == 0 else []
        rows = [] if reserve else page.rows
        lines += [page.pieces[row].lines for row in rows]
        messages = [dict(each) for row in rows for each in page.pieces[row].objects]
        objects.append({**head, **(tail if len(pages) == 1 else {}), "messages": messages})
    return "\n".join(lines), objects[0] if len(pages) == 1 else {**tail, "talks": objects}


def _head(view: View, page: _Page, *, reserve: bool) -> tuple[list[str], dict[str, Any]]:
    message = view.corpus.messages([page.talk.asked[0]])[0]
    size = int(view.thread_sizes[view.narrow.thread[message.row]])
    total = len(page.talk.sequence)
    shown = total if reserve else len(page.pieces)
    left = dict.fromkeys(("earlier", "between", "later"), total) if reserve else page.left_out()
    head: dict[str, Any] = {"view": page.talk.kind, "conversation": clipped(message.conversation)}
    line = f"view: {page.talk.kind} in #{inline(message.conversation)}"
    if total > 1 and page.talk.kind == "thread":
        head |= {"thread": message.thread_id, "thread_size": size}
        line += f", thread {one_line(message.thread_id)} of {counted(size, 'message')}"
    head |= {"shown": shown, "left_out": left}
    told = ", ".join(f"{where} {number}" for where, number in left.items())
    return [line + " (times UTC)", f"shown {shown}, left out {told}"], head
