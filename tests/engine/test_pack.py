"""How much fits: what the packer reckons is what leaves, to the byte."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.limits import PageBudget
from engine.pack import Packer, Piece, escaped_bytes, fits, framed_bytes, json_bytes

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


def left_as(text: str, structured: dict[str, Any] | None) -> bytes:
    """The whole result as it leaves."""
    out: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False}
    if structured is not None:
        out["structuredContent"] = structured
    return json.dumps(out, ensure_ascii=False, separators=(",", ":")).encode()


@given(TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=3))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_what_is_reckoned_is_what_leaves(text: str, structured: dict[str, str]) -> None:
    assert framed_bytes(text, None) == len(left_as(text, None))
    assert framed_bytes(text, structured) == len(left_as(text, structured))
    assert escaped_bytes(text) == json_bytes(text) - 2


@pytest.mark.parametrize("structured", [False, True])
@given(
    st.lists(st.lists(TEXTS, min_size=1, max_size=3), max_size=12),
    st.integers(200, 900),
    st.none() | st.integers(0, 300),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_page_never_exceeds_its_room(structured: bool, pieces: list[list[str]], room: int, share: int | None) -> None:  # noqa: FBT001 - a parameter
    budget = PageBudget(structured=structured)
    envelope = {"found": 12, "messages": []}
    packer = Packer(budget, room, "head", envelope)
    for texts in pieces:
        piece = Piece("\n".join(texts), [{"text": text} for text in texts])
        before = packer.left()
        kept = len(packer.pieces)
        if packer.offer(piece, share=share):
            assert share is None or before - packer.left() <= share
            assert len(packer.pieces) == kept + 1
        else:
            assert (packer.left(), len(packer.pieces)) == (before, kept)
    objects = [each for piece in packer.pieces for each in piece.objects]
    text = "\n".join(["head", *(piece.lines for piece in packer.pieces)])
    told = {"found": 12, "messages": objects}
    assert fits(text, told, budget, room)
    assert len(left_as(text, told if structured else None)) <= room
    assert packer.left() >= 0
    # The comma before the first object is reckoned and not written: nothing else is.
    spare = room - max(framed_bytes(text, told if structured else None), 0 if structured else json_bytes(told))
    assert spare - 1 <= packer.left() <= spare


def test_the_object_alone_must_fit_too() -> None:
    assert not fits("", {"x": "y" * 300}, PageBudget(), 200)
    assert fits("", {"x": "y" * 100}, PageBudget(), 200)
    assert not fits("", {"x": "y" * 150}, PageBudget(structured=True), 200)
    assert not fits("y" * 300, {}, PageBudget(), 200)
