"""`search_messages` and `unseen_messages`: excerpts of what matches, and the session that remembers them.

Decides what one page holds, what it says was left out, and what becomes of a lost race for a batch. The counts
always add up: found = shown + copies + left out + seen before.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.answer import Answer
from engine.call import Call
from engine.errors import Unavailable
from engine.excerpts import Block, Texts, blocks_of
from engine.hints import close_notes, hints_of, inside_line
from engine.hits import Hits, find
from engine.index.rows import is_member
from engine.match import compile_tree
from engine.ordering import Ranking, rank, scored
from engine.pack import Packer
from engine.ports import Batch
from engine.query.bind import bind
from engine.record import UNRECORDED, claim_rows, record, reopen, session_for
from engine.render import (
    Shown,
    bounded_notes,
    chosen_fields,
    counted,
    found_line,
    found_object,
    hint_lines,
    searched_line,
    searched_object,
    shortened,
)
from engine.requests import SearchRequest, UnseenRequest
from engine.seen import Session, digest, successor, unpacked

__all__ = ["search", "unseen"]

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]

_WIDEST_BATCH = 10**9
_HANDLE = "x" * 64
"""As wide as any handle: what the envelope reserves."""
_INSIDE_CHARS = 300
"""Longest line of the words that terms were found inside: beyond that it is a list, not a hint."""
_SHORTEST_TEXT = 40
"""The smallest `text_limit`: below it an excerpt says nothing."""
_BARE = f"texts cut to {_SHORTEST_TEXT} characters and all other fields left out to fit"
"""The longest note on what a page cost."""


@dataclass(frozen=True, slots=True)
class _Page:
    """What fits, before it is known which batch it is.

    `shown`, `copies`, `left_out` and `seen` are counts of hits. `picked` are the rows chosen for the page,
    `around` what else is displayed (of it `neighbours` are no hits), `groups` those picked that stand for copies.
    """

    lines: tuple[str, ...] = ()
    objects: tuple[dict[str, Any], ...] = ()
    shown: int = 0
    picked: tuple[int, ...] = ()
    around: tuple[int, ...] = ()
    neighbours: int = 0
    groups: tuple[int, ...] = ()
    copies: int = 0
    left_out: int = 0
    seen: int = 0
    by_size: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Head:
    """The parts of a result that stand before its messages and do not depend on them."""

    hits: Hits
    notes: tuple[str, ...]
    inside: str
    hints: dict[str, Any] = field(default_factory=dict)


def search(request: SearchRequest, call: Call) -> Answer:
    """The best, newest or oldest matches, whether seen before or not.

    Raises:
        EngineError: what `bind`, `find` and `open_session` raise.
    """
    session = session_for(call, request.session)
    hits = find(call.view, bind(request.criteria, call.view, call.zone), brute=call.brute)
    head = _head(hits)
    page = _page(
        head, request, hits, rank(hits, hits.rows, request.order, request.limit), hits.rows, _seen(hits, session)
    )
    if session is None:
        return _answer(head, _unrecorded(page), request.session, 0)
    if not page.picked:
        return _answer(head, page, request.session, session.newest)
    batch = record(call, session, digest(request), shown=page.picked, around=page.around, groups=page.groups)
    if batch is None:
        return _answer(head, _unrecorded(page), request.session, 0)
    return _answer(head, page, session.handle, batch.number)


def _unrecorded(page: _Page) -> _Page:
    return replace(page, notes=(*page.notes, UNRECORDED))


def unseen(request: UnseenRequest, call: Call) -> Answer:
    """Matches that the session has not been shown; each claims its batch, so that no two calls show the same.

    Raises:
        BadInput: `bad_batch`.
        Unavailable: the session store cannot be reached, or other calls kept winning.
        EngineError: what `bind`, `find` and `open_session` raise.
    """
    asked = request.search
    handle = asked.session
    session = reopen(call, handle) if handle is not None else Session(call.mint(), call.caller.caller_id)
    hits = find(call.view, bind(asked.criteria, call.view, call.zone), brute=call.brute)
    # What is close to the words was said by the search before; without a match it is all there is to say.
    head = _head(hits) if not hits.found.messages else _Head(hits, hits.query.notes, inside_line(hits))
    wanted = digest(request)
    for _ in range(call.limits.claim_attempts):
        if request.after_batch is not None:
            batch = successor(session, request.after_batch, wanted)
            if batch is not None:
                return _repeat(head, request, hits, session, batch)
        seen = _seen(hits, session)
        pool = hits.rows[~seen[hits.rows]]
        page = _page(head, asked, hits, rank(hits, pool, asked.order, asked.limit), pool, seen)
        if not page.picked:
            return _answer(head, page, handle, session.newest)
        try:
            batch = claim_rows(call, session, wanted, shown=page.picked, around=page.around, groups=page.groups)
        except Unavailable as error:
            raise _in_doubt(error, request, session) from error
        if batch is not None:
            return _answer(head, page, session.handle, batch.number)
        session = reopen(call, session.handle)
    raise Unavailable("session_busy", "other calls of this session kept coming first", next_step="call again")


def _in_doubt(error: Unavailable, request: UnseenRequest, session: Session) -> Unavailable:
    """The error of a claim that may have been written: naming the batch before it shows what it would hide."""
    if request.after_batch is not None:
        way = "call again with the same arguments"
    elif session.newest:
        way = f"call again with after_batch={session.newest}, or what this call may have recorded is never shown"
    else:
        way = "call again"
    return Unavailable(error.code, error.message, next_step=way, detail=error.detail)


def _seen(hits: Hits, session: Session | None) -> Mask:
    """All rows of the corpus that the session was shown; only rows of hits are looked at."""
    mask = np.zeros(hits.view.corpus.rows, dtype=bool)
    if session is not None and session.batches and len(hits.rows):
        corpus = hits.view.corpus
        mask[hits.rows] = session.seen(corpus.message_keys[hits.rows], corpus.copy_keys[hits.rows])
    return mask


def _head(hits: Hits) -> _Head:
    return _Head(hits, (*hits.query.notes, *close_notes(hits)), inside_line(hits), hints_of(hits))


def _page(head: _Head, request: SearchRequest, hits: Hits, ranking: Ranking, pool: Rows, seen: Mask) -> _Page:
    """Fill a page from the front of a ranking of `pool`."""
    view = hits.view
    texts = Texts(view, compile_tree(hits.query.tree), chosen_fields(request.fields), all_by_scan=hits.searched.by_scan)
    chosen = ranking.rows[: request.limit].tolist()
    copies = dict(zip(chosen, ranking.copies.tolist(), strict=False))
    scores = dict(zip(chosen, ranking.scores.tolist(), strict=False))
    # A neighbour that was seen before is no match of this page: it stands there for its hit's sake.
    matching = np.zeros(view.corpus.rows, dtype=bool)
    matching[pool] = True
    blocks = blocks_of(view, chosen, matching, request.context)
    texts.load(row for block in blocks for row in block.rows)

    def shown(block: Block, limit: int) -> list[Shown]:
        return [
            texts.hit(row, limit, copies=copies.get(row, 0), path=hits.path(row), score=scores.get(row))
            if row in block.hits
            else texts.neighbour(row, limit)
            for row in block.rows
        ]

    text, envelope = _forms(head, _widest(hits), _HANDLE, _WIDEST_BATCH, repeated=True)
    packer = Packer(view.limits.page, view.limits.page.page, text, envelope)
    taken: list[Block] = []
    notes: tuple[str, ...] = ()
    for block in blocks:
        if packer.offer(texts.piece(shown(block, request.text_limit), apart=bool(request.context and taken))):
            taken.append(block)
            continue
        if not taken:
            kept, note = _shortened(packer, texts, block, request.text_limit, shown, copies)
            taken.append(kept)
            notes = (note,)
        break
    return _accounted(hits, pool, seen, taken, chosen, copies, packer, notes)


def _shortened(
    packer: Packer,
    texts: Texts,
    block: Block,
    limit: int,
    shown: Callable[[Block, int], list[Shown]],
    copies: Mapping[int, int],
) -> tuple[Block, str]:
    """Make the first block fit: shorter texts, then no neighbours, then the id and a text of 40 characters alone.

    Returns what was kept, and the note that says what it cost.
    """
    first = next(row for row in block.rows if row in copies)
    alone = Block((first,), frozenset((first,)))
    for candidate in (block, alone):
        for length in _lengths(limit):
            if packer.offer(texts.piece(shown(candidate, length), apart=False)):
                note = f"texts cut to {length} characters" if length < limit else "what stands around left out"
                return candidate, f"{note} to fit"
    bare = texts.bare()
    packer.offer(bare.piece(shown(alone, _SHORTEST_TEXT), apart=False))
    return alone, _BARE


def _lengths(limit: int) -> Iterator[int]:
    """Lengths of a text to try: halved down to the shortest."""
    length = limit
    while length > _SHORTEST_TEXT:
        yield length
        length //= 2
    yield _SHORTEST_TEXT


def _accounted(
    hits: Hits,
    pool: Rows,
    seen: Mask,
    taken: Sequence[Block],
    chosen: Sequence[int],
    copies: Mapping[int, int],
    packer: Packer,
    notes: tuple[str, ...],
) -> _Page:
    """Every hit is in one of four places: shown, a copy of what is shown, seen before, or left out."""
    view = hits.view
    displayed = [row for block in taken for row in block.rows]
    picked = [row for row in chosen if row in set(displayed)]
    groups = [row for row in picked if copies[row]]
    rows = hits.rows
    shown = np.array(sorted({row for block in taken for row in block.hits}), dtype=np.int64)
    rest = ~is_member(rows, shown, view.corpus.rows)
    copied = np.zeros_like(rest)
    if groups:
        copied = rest & np.isin(view.narrow.copy[rows], view.narrow.copy[groups])
        if len(pool) < len(rows):
            copied &= is_member(rows, pool, view.corpus.rows)
    earlier = seen[rows] & rest & ~copied
    return _Page(
        lines=tuple(piece.lines for piece in packer.pieces),
        objects=tuple(dict(each) for piece in packer.pieces for each in piece.objects),
        shown=sum(len(block.hits) for block in taken),
        picked=tuple(picked),
        around=tuple(row for row in displayed if row not in set(picked)),
        neighbours=sum(len(block.rows) - len(block.hits) for block in taken),
        groups=tuple(groups),
        copies=int(np.count_nonzero(copied)),
        left_out=int(np.count_nonzero(rest & ~copied & ~earlier)),
        seen=int(np.count_nonzero(earlier)),
        by_size=len(picked) < len(chosen),
        notes=notes,
    )


def _widest(hits: Hits) -> _Page:
    """A page whose every number is as long as it can get."""
    every = hits.found.messages
    notes = (_BARE, _gone(100), UNRECORDED)
    return _Page(shown=every, neighbours=500, copies=every, left_out=every, seen=every, by_size=True, notes=notes)


def _gone(messages: int) -> str:
    return f"{counted(messages, 'message')} of this batch can no longer be shown"


def _repeat(head: _Head, request: UnseenRequest, hits: Hits, session: Session, batch: Batch) -> Answer:
    """Show a batch again, from the current snapshot and sight, without what has gone since."""
    corpus = hits.view.corpus
    seen = _seen(hits, session.before(batch.number))
    pool = hits.rows[~seen[hits.rows]]
    keys = unpacked(batch.shown).tolist()
    rows = {int(key): int(row) for key, row in zip(corpus.message_keys[pool].tolist(), pool.tolist(), strict=True)}
    ordered = np.array([rows[key] for key in keys if key in rows], dtype=np.int64)
    sizes = np.bincount(hits.view.narrow.copy[pool], minlength=corpus.manifest.copy_groups)
    merged = np.isin(corpus.copy_keys[ordered], unpacked(batch.groups))
    copies = np.where(merged, sizes[hits.view.narrow.copy[ordered]] - 1, 0)
    scores = scored(hits, ordered) if request.search.order == "best" else np.zeros(len(ordered))
    asked = replace(request.search, limit=max(1, len(keys)))
    page = _page(head, asked, hits, Ranking(ordered, copies, scores), pool, seen)
    gone = len(keys) - len(page.picked)
    if gone:
        page = replace(page, notes=(*page.notes, _gone(gone)))
    return _answer(head, page, session.handle, batch.number, repeated=True)


def _forms(
    head: _Head, page: _Page, handle: str | None, batch: int, *, repeated: bool = False
) -> tuple[str, dict[str, Any]]:
    """The result with the messages of `page`, in both forms."""
    notes = bounded_notes((*head.notes, *page.notes))
    out: dict[str, Any] = {
        "searched": searched_object(head.hits.searched),
        "found": found_object(head.hits.found),
        "shown": page.shown,
        "left_out": _left_out(page),
    }
    if page.copies:
        out["copies"] = page.copies
    if handle is not None:
        out |= {"session": handle, "batch": batch} if batch else {"session": handle}
    if repeated:
        out["repeated"] = True
    if head.hints:
        out["hints"] = head.hints
    if notes:
        out["notes"] = notes
    out["messages"] = list(page.objects)
    lines = [searched_line(head.hits.searched), found_line(head.hits.found)]
    if head.hits.found.messages:
        lines.append(_shown_line(page, handle, batch, repeated=repeated))
    elif handle is not None:
        lines.append(f"session {handle}")
    lines += [shortened(head.inside, _INSIDE_CHARS)] if head.inside else []
    lines += hint_lines(head.hints)
    lines += [f"note: {note}" for note in notes]
    return "\n".join([*lines, *page.lines]), out


def _left_out(page: _Page) -> dict[str, Any]:
    out: dict[str, Any] = {"messages": page.left_out}
    if page.left_out:
        out |= {"why": "size" if page.by_size else "limit", "next": "unseen_messages"}
    if page.seen:
        out["seen"] = page.seen
    return out


def _shown_line(page: _Page, handle: str | None, batch: int, *, repeated: bool) -> str:
    left = f"left out {page.left_out}"
    if page.left_out:
        left += " by size (unseen_messages)" if page.by_size else " (unseen_messages)"
    around = f" and {page.neighbours} around" if page.neighbours else ""
    line = f"shown {page.shown}{around}, {left}, seen before {page.seen}, copies {page.copies}"
    if handle is not None:
        line += f" | session {handle}" + (f" batch {batch}" if batch else "")
    return line + (" repeated" if repeated else "")


def _answer(head: _Head, page: _Page, handle: str | None, batch: int, *, repeated: bool = False) -> Answer:
    return Answer(*_forms(head, page, handle, batch, repeated=repeated))
