"""From ordered hits to what is shown of them: with their neighbours, cut, marked, and checked.

Decides which messages a page would show and at what length; `engine.pack` decides how many fit. Every hit is checked
here on its original text. Must never know sessions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import BrokenSnapshot
from engine.match import Matcher
from engine.model import Message
from engine.pack import Piece
from engine.render import Shown, message_line, message_object
from engine.snippet import snippet
from engine.view import View
from engine.windows import Window, merged

__all__ = ["Block", "Texts", "blocks_of", "check"]

Rows = NDArray[np.int64]

_TOPIC_CHARS = 120
"""Longest topic shown: a subject line, not a text."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows shown together in order of time; those not in `hits` are shown for their neighbours' sake."""

    rows: tuple[int, ...]
    hits: frozenset[int]


def blocks_of(view: View, chosen: Sequence[int], matching: NDArray[np.bool_], context: int) -> list[Block]:
    """A block for each chosen row with up to `context` neighbours on each side, as `grep -C` does.

    Neighbours are those of its thread, or outside threads of its conversation. Blocks that overlap or touch are
    joined, at the place of the first. A neighbour that matches too is a hit.
    """
    if not context:
        return [Block((row,), frozenset((row,))) for row in chosen]
    windows = merged(Window.around(row, view.neighbours(row), context, context) for row in chosen)
    placed: set[int] = set()
    blocks = []
    for window in windows:
        rows = tuple(row for row in window.rows if row not in placed)
        placed.update(rows)
        if rows:
            blocks.append(Block(rows, frozenset(row for row in rows if matching[row])))
    return blocks


def check(matcher: Matcher, message: Message) -> None:
    """Hold a hit against its original text, before anything of it leaves.

    Raises:
        BrokenSnapshot: `snapshot_broken` when the text does not bear it out.
    """
    if not matcher.matches(message.topic, message.body):
        raise BrokenSnapshot(
            "snapshot_broken",
            "a hit is not borne out by its original text",
            next_step="run verify, then refresh",
        )


class Texts:
    """What is shown of messages under one query: made for one call, each message read once."""

    def __init__(self, view: View, matcher: Matcher, fields: frozenset[str], *, all_by_scan: bool = False) -> None:
        """`all_by_scan`: the head of the result says for all hits what found them."""
        self._view = view
        self._matcher = matcher
        self._fields = fields
        self._all_by_scan = all_by_scan
        self._messages: dict[int, Message] = {}

    def bare(self) -> "Texts":
        """The same texts with nothing but id and text: the least that can be shown."""
        return Texts(self._view, self._matcher, frozenset({"text", "truncated"}), all_by_scan=self._all_by_scan)

    def load(self, rows: Iterable[int]) -> None:
        """Read the messages of these rows, in one statement."""
        missing = [row for row in rows if row not in self._messages]
        if missing:
            self._messages.update(zip(missing, self._view.corpus.messages(missing), strict=True))

    def message(self, row: int) -> Message:
        """A message loaded before."""
        return self._messages[row]

    def hit(self, row: int, limit: int, *, copies: int, path: str | None, score: float | None) -> Shown:
        """A hit, its matches marked, checked on its original text.

        Raises:
            BrokenSnapshot: as `check`.
        """
        message = self._messages[row]
        check(self._matcher, message)
        return Shown(
            message=message,
            text=snippet(message.body, self._matcher.spans(message.body, "body"), limit),
            topic=snippet(message.topic, self._matcher.spans(message.topic, "topic"), _TOPIC_CHARS).text,
            thread_size=self._thread_size(row),
            copies=copies,
            match=path,
            score=score,
        )

    def neighbour(self, row: int, limit: int) -> Shown:
        """A message shown for a hit's sake: unmarked."""
        message = self._messages[row]
        return Shown(
            message=message,
            text=snippet(message.body, [], limit),
            topic=snippet(message.topic, [], _TOPIC_CHARS).text,
            thread_size=self._thread_size(row),
            around=True,
        )

    def piece(self, shown: Sequence[Shown], *, apart: bool) -> Piece:
        """Both forms of messages that stand together; `apart` puts an empty line before them."""
        lines = "\n".join(
            message_line(each, self._fields, by_scan=each.match == "substring" and not self._all_by_scan)
            for each in shown
        )
        return Piece(("\n" if apart else "") + lines, [message_object(each, self._fields) for each in shown])

    def _thread_size(self, row: int) -> int:
        return int(self._view.thread_sizes[self._view.narrow.thread[row]])
