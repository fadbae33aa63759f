"""Folding that remembers where each character came from: a match on folded text is shown on the original.

Decides where a text may be cut so that its pieces fold as they do within the whole. Must never know what
matched.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import regex

from engine.text import fold

__all__ = ["Folded", "aligned_fold", "segments"]

# What may join the character before it when folded: marks, Hangul vowels and finals (also half-width and
# compatibility ones, which NFKC turns into joining ones), and letters that decompose to a mark first.
_JOINING = (
    r"\p{M}\p{GCB=V}\p{GCB=T}\u0E33\u0EB3"
    r"\u3133\u3135\u3136\u313A-\u313F\u314F-\u3164\u3167-\u316D\u316F\u3170\u3182\u3183\u3187-\u318E"
    r"\uFF9E-\uFFA0\uFFA3\uFFA5\uFFA6\uFFAA-\uFFAF\uFFC2-\uFFC7\uFFCA-\uFFCF\uFFD2-\uFFD7\uFFDA-\uFFDC"
)
_JOINS = regex.compile(f"[{_JOINING}]")
_CUT = regex.compile(f"[^{_JOINING}]")
_SEGMENT = regex.compile(f"(?s:.)[{_JOINING}]*+")

_BLOCK_CHARS = 512
"""Texts are aligned a block at a time, and only where asked: a megabyte costs little more than its fold."""


def segments(text: str) -> list[str]:
    """`text` in the smallest pieces whose folds, put together, are the fold of the whole."""
    return _SEGMENT.findall(text)


@dataclass(frozen=True, slots=True)
class Folded:
    """`text` is the fold of `original`; `origins` leads back.

    `blocks` holds where each block starts in `original`, `folded_blocks` where it starts in `text`; both
    hold the whole length at the end.
    """

    original: str
    text: str
    blocks: tuple[int, ...]
    folded_blocks: tuple[int, ...]

    def origins(self, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """For each non-empty span [start, end) of `text`, the span of `original` whose segments it touches.

        Cheapest when spans come in order: each block is then aligned once.
        """
        out = []
        known = -1
        bounds: Sequence[tuple[int, int]] | None = None
        for span in spans:
            ends = []
            for offset in (span[0], span[1] - 1):
                block = bisect_right(self.folded_blocks, offset) - 1
                if block != known:
                    known, bounds = block, self._bounds(block)
                within = offset - self.folded_blocks[block]
                place = self.blocks[block] + within
                ends.append(bounds[within] if bounds is not None else (place, place + 1))
            out.append((ends[0][0], ends[1][1]))
        return out

    def _bounds(self, block: int) -> list[tuple[int, int]] | None:
        """For each folded character of a block, its segment of `original`; `None`: each is its own."""
        at, end = self.blocks[block : block + 2]
        original = self.original[at:end]
        length = self.folded_blocks[block + 1] - self.folded_blocks[block]
        # Nothing folds to nothing: equal lengths without anything that joins are one character for one.
        if length == end - at and not _JOINS.search(original):
            return None
        bounds = []
        for segment in segments(original):
            bounds += [(at, at + len(segment))] * len(fold(segment))
            at += len(segment)
        return bounds


def aligned_fold(text: str) -> Folded:
    """`fold(text)` with the way back to `text`."""
    if text.isascii():
        blocks = (*range(0, len(text), _BLOCK_CHARS), len(text))
        return Folded(text, fold(text), blocks, blocks)
    starts, folded_blocks, pieces = [0], [0], []
    while starts[-1] < len(text):
        cut = _CUT.search(text, starts[-1] + _BLOCK_CHARS)
        end = cut.start() if cut else len(text)
        pieces.append(fold(text[starts[-1] : end]))
        starts.append(end)
        folded_blocks.append(folded_blocks[-1] + len(pieces[-1]))
    return Folded(text, "".join(pieces), tuple(starts), tuple(folded_blocks))
