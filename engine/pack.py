"""How much fits: bytes are counted as they will leave, before anything is written.

A result leaves as JSON: `{"content":[{"type":"text","text":…}],"isError":false}` around the text, and
`"structuredContent"` beside it when the object travels too. The object alone must fit as well, since programs get it
alone. Must never know what a message is.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.limits import PageBudget

__all__ = ["Packer", "Piece", "escaped_bytes", "fits", "framed_bytes", "json_bytes"]

_FRAME = '{"content":[{"type":"text","text":""}],"isError":false}'
_STRUCTURED = ',"structuredContent":'


def json_bytes(value: object) -> int:
    """Bytes of a value in JSON as it leaves: no blanks, every character itself in UTF-8."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def escaped_bytes(text: str) -> int:
    """Bytes of a text inside a JSON string, without its quotes."""
    return json_bytes(text) - 2


def framed_bytes(text: str, structured: Mapping[str, Any] | None) -> int:
    """Bytes of a whole result, before what protocol and payment stamp on."""
    size = len(_FRAME) + escaped_bytes(text)
    return size if structured is None else size + len(_STRUCTURED) + json_bytes(structured)


def fits(text: str, structured: Mapping[str, Any], budget: PageBudget, room: int) -> bool:
    """Whether a finished result, in each form it may leave in, is within `room` bytes."""
    return json_bytes(structured) <= room and framed_bytes(text, structured if budget.structured else None) <= room


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing to show, in both forms: lines of text, and objects for the list."""

    lines: str
    objects: Sequence[Mapping[str, Any]]

    @property
    def text_bytes(self) -> int:
        """What it adds to the text form, with the newline before it."""
        return escaped_bytes(self.lines) + 2

    @property
    def object_bytes(self) -> int:
        """What it adds to the object form, with the commas."""
        return sum(json_bytes(each) + 1 for each in self.objects)


class Packer:
    """Takes pieces while they fit into what the envelope leaves.

    `envelope_text` and `envelope_object` are the result without pieces, at its widest.
    """

    def __init__(self, budget: PageBudget, room: int, envelope_text: str, envelope_object: Mapping[str, Any]) -> None:
        self._structured = budget.structured
        self._room = room
        self._text = framed_bytes(envelope_text, None)
        self._object = json_bytes(envelope_object)
        self.pieces: list[Piece] = []

    def left(self) -> int:
        """Bytes that the fuller of the two forms has left."""
        if self._structured:
            return self._room - self._text - len(_STRUCTURED) - self._object
        return self._room - max(self._text, self._object)

    def takes(self, piece: Piece, *, share: int | None = None) -> bool:
        """Whether a piece would fit, into `share` bytes at most when given."""
        text, structured = piece.text_bytes, piece.object_bytes
        room = self._room if share is None else min(self._room, self._used() + share)
        if self._structured:
            return self._text + text + len(_STRUCTURED) + self._object + structured <= room
        return max(self._text + text, self._object + structured) <= room

    def offer(self, piece: Piece, *, share: int | None = None) -> bool:
        """Take a piece if it fits; otherwise nothing changes."""
        if not self.takes(piece, share=share):
            return False
        self._text += piece.text_bytes
        self._object += piece.object_bytes
        self.pieces.append(piece)
        return True

    def _used(self) -> int:
        return self._room - self.left()
